package compat_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"msgexchange/http/compat"
	"msgexchange/http/problem"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

// requests is a desk that notes what it is asked for.
type requests struct {
	window request.Window
	actor  string
	err    error
	lost   bool // it never gets into the mailbox
}

func (r *requests) Ask(_ context.Context, kind message.Kind, w request.Window, actor string) (request.Request, error) {
	r.window, r.actor = w, actor
	return request.Request{ID: 3, Kind: kind}, r.err
}

func (r *requests) Sent(_ context.Context, id int64, patience time.Duration) (int64, bool, error) {
	return 40 + id, !r.lost && patience == 5*time.Second, nil
}

func sync(t *testing.T, s *compat.Syncer, body string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/schd/sync", strings.NewReader(body))
	return rec, s.Sync(c)
}

// 200 says that the request is in the mailbox; the answer is that of the system being replaced, byte for byte.
func TestSync(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("CST", 8*60*60)
	r := &requests{}
	rec, err := sync(t, &compat.Syncer{Requests: r, Zone: zone}, `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59"}`)
	require.NoError(t, err)
	require.Equal(t, `{"is_success":true,"body":43}`, rec.Body.String())
	require.True(t, r.window.From.Equal(time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)))
	require.True(t, r.window.To.Equal(time.Date(2026, 11, 30, 15, 59, 0, 0, time.UTC)))
	require.Equal(t, "peer", r.actor)
}

func TestSync_refused(t *testing.T) {
	t.Parallel()
	const good = `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59"}`
	for name, c := range map[string]struct {
		syncer compat.Syncer
		desk   requests
		body   string
		code   problem.Code
	}{
		"shadow":             {compat.Syncer{Shadow: true}, requests{}, good, problem.ShadowMode},
		"empty":              {compat.Syncer{}, requests{}, "", problem.EmptyBody},
		"no JSON":            {compat.Syncer{}, requests{}, "{", problem.BadRequest},
		"no start":           {compat.Syncer{}, requests{}, `{"endTime":"2026-11-30 23:59"}`, problem.BadRequest},
		"no end":             {compat.Syncer{}, requests{}, `{"startTime":"2026-11-30 23:59"}`, problem.BadRequest},
		"12-hour clock":      {compat.Syncer{}, requests{}, `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 11:59 PM"}`, problem.BadRequest},
		"24:00":              {compat.Syncer{}, requests{}, `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 24:00"}`, problem.BadRequest},
		"equal":              {compat.Syncer{}, requests{}, `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 00:00"}`, problem.BadRequest},
		"longer than 3 d":    {compat.Syncer{}, requests{}, `{"startTime":"2026-11-30 00:00","endTime":"2026-12-03 00:01"}`, problem.BadRequest},
		"not of this site":   {compat.Syncer{}, requests{err: request.KindError{Kind: request.Schedule}}, good, problem.BadRequest},
		"not in the mailbox": {compat.Syncer{}, requests{lost: true}, good, problem.MailboxUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.syncer.Requests, c.syncer.Zone = &c.desk, time.UTC
			_, err := sync(t, &c.syncer, c.body)
			require.Equal(t, c.code, code(err), "%v", err)
		})
	}
}
