package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/inbox"
)

// lane reseeds as it is told to.
type lane struct {
	look, reseed error
	began        *inbox.Start
}

func (l lane) Look(_ context.Context, from inbox.Cutover) (inbox.Start, error) {
	return inbox.Start{From: from, W: 41}, l.look
}

func (l lane) Reseed(_ context.Context, _ pgx.Tx, start inbox.Start) (store.Closed, error) {
	*l.began = start
	return store.Closed{Generation: 2, Archived: 7, Abandoned: 3}, l.reseed
}

// post gives an order to the endpoint at path.
func post(t *testing.T, a *API, path, text string) (string, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	ctx := access.With(t.Context(), access.Caller{Name: "olga", Role: access.Operator, Peer: netip.MustParseAddr("10.1.2.3")})
	c.Request = httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(text))
	err := a.Orders()[path](c)
	return rec.Body.String(), err
}

func TestReseed(t *testing.T) {
	t.Parallel()
	a, bell, pool := desk(t)
	began := &inbox.Start{}
	a.Lane = lane{began: began}
	answer, err := post(t, a, "/ops/lane/reseed", `{"watermark":"min","reason":"INC-7"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"generation":2,"watermark":41,"archived":7,"marksAbandoned":3,"dryRun":false}`, answer)
	require.Equal(t, inbox.Start{From: "min", W: 41}, *began)
	require.Equal(t, 1, bell.woken, "the poller")
	row := audited(t, pool)
	require.Equal(t, "lane-reseed", row.Action)
	require.JSONEq(t, `{"watermark":"min"}`, string(row.Scope))
	require.JSONEq(t, answer, string(row.Result))
}

func TestReseed_refused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lane  lane
		order string
		code  problem.Code
		why   string
	}{
		"unfinished": {lane{reseed: fmt.Errorf("%w: 3 of them", store.ErrUnfinished)}, `{"watermark":"min","reason":"r"}`, problem.Conflict, "messages are unfinished: 3 of them"},
		"marking":    {lane{reseed: store.ErrMarking}, `{"watermark":"min","reason":"r"}`, problem.Conflict, "marks are being written"},
		"broken":     {lane{reseed: errors.New("secret")}, `{"watermark":"min","reason":"r"}`, problem.Internal, ""},
		"away":       {lane{look: fault.New(fault.Outage, "mailbox", "away")}, `{"watermark":"min","reason":"r"}`, problem.Unavailable, ""},
		"ahead":      {lane{look: fmt.Errorf("%w; the highest is 7", inbox.ErrAhead)}, `{"watermark":8,"reason":"r"}`, problem.Conflict, "the highest is 7"},
		"nowhere":    {lane{}, `{"reason":"r"}`, problem.BadRequest, "watermark"},
		"no place":   {lane{}, `{"watermark":"first","reason":"r"}`, problem.BadRequest, "watermark"},
		"no id":      {lane{}, `{"watermark":4711.5,"reason":"r"}`, problem.BadRequest, "want min, zero, max or an id"},
		"below all":  {lane{}, `{"watermark":-5,"reason":"r"}`, problem.BadRequest, "want min, zero, max or an id"},
		"no word":    {lane{}, `{"watermark":{},"reason":"r"}`, problem.BadRequest, "watermark is a object"},
		"no reason":  {lane{}, `{"watermark":"min"}`, problem.BadRequest, "reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, bell, _ := desk(t)
			tc.lane.began = &inbox.Start{}
			a.Lane = tc.lane
			_, err := post(t, a, "/ops/lane/reseed", tc.order)
			require.Equal(t, tc.code, problem.Of(err).Code)
			require.Contains(t, problem.Of(err).Detail, tc.why)
			require.Zero(t, bell.woken)
		})
	}
}

// An id is an id, in whichever of its two forms it is written: "a number is the last id to be skipped", says the runbook.
func TestReseed_atAnID(t *testing.T) {
	t.Parallel()
	for _, order := range []string{`{"watermark":4711,"reason":"r"}`, `{"watermark":"4711","reason":"r"}`} {
		a, _, _ := desk(t)
		var began inbox.Start
		a.Lane = lane{began: &began}
		_, err := post(t, a, "/ops/lane/reseed", order)
		require.NoError(t, err, order)
		require.Equal(t, inbox.Cutover("4711"), began.From, order)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	a, bell, pool := desk(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO proc_state (msg_id, state, created_at, updated_at, finished_at, backfill_next_at, backfill_at, backfill_abandoned_at)
		SELECT g, 'SUCCEEDED', a, a, a, CASE g WHEN 1 THEN a END, CASE g WHEN 2 THEN a END, CASE g WHEN 1 THEN a END
		FROM generate_series(1, 2) g, (SELECT $1::timestamptz AS a) x`, a.Now())
	require.NoError(t, err)
	want := `{"items":[{"id":1,"result":"QUEUED"},{"id":2,"result":"SKIPPED","why":"already written"},{"id":3,"result":"NOT_FOUND"}],"dryRun":%v}`
	answer, err := post(t, a, "/ops/backfill/resume", `{"ids":[1,2,3],"reason":"row is back","dryRun":true}`)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(want, true), answer)
	require.Zero(t, bell.woken)
	answer, err = post(t, a, "/ops/backfill/resume", `{"ids":[1,2,3],"reason":"row is back"}`)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(want, false), answer)
	require.Equal(t, 1, bell.woken)
	var owed int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM proc_state WHERE backfill_abandoned_at IS NULL AND backfill_next_at IS NOT NULL").Scan(&owed))
	require.Equal(t, 1, owed)
	_, err = post(t, a, "/ops/backfill/resume", `{"ids":[],"reason":"r"}`)
	require.Equal(t, problem.BadRequest, problem.Of(err).Code)
}
