package console_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/console"
	"msgexchange/http/health"
	"msgexchange/jobs/fault"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

func now() time.Time { return time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC) }

func page(t *testing.T, summary func(context.Context) (store.OpsSummary, error)) string {
	t.Helper()
	c, err := console.New(console.Deps{
		Service: "msgexchangeapi", Version: "v1", Now: now, Summary: summary,
		Report: func() health.Report {
			return health.Report{Status: health.Degraded, Checks: map[string]health.Check{"kafka": health.Failed("<no> broker")}}
		},
	})
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	g, _ := gin.CreateTestContext(rec)
	g.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	require.NoError(t, c.Page(g))
	require.Equal(t, http.StatusOK, rec.Code)
	return rec.Body.String()
}

func TestPage(t *testing.T) {
	t.Parallel()
	stopped := "id-regression"
	got := page(t, func(context.Context) (store.OpsSummary, error) {
		return store.OpsSummary{
			Lanes:    []store.OpsLane{{Lane: "default", CommittedUpTo: 4711, StoppedReason: &stopped}},
			Events:   []store.OpsOutbox{{Target: "KAFKA:msg", Pending: 12, OldestSeconds: 3.4}},
			Messages: store.OpsBacklog{Unfinished: 5, HeadID: 4712},
			Flights:  815,
		}, nil
	})
	for _, want := range []string{"degraded", "&lt;no&gt; broker", "4711", "id-regression", "KAFKA:msg", `/ops/messages/4712"`, "815 live flights", "/riverui/", "v1"} {
		require.Contains(t, got, want)
	}
}

func TestPage_databaseAway(t *testing.T) {
	t.Parallel()
	got := page(t, func(context.Context) (store.OpsSummary, error) {
		return store.OpsSummary{}, fault.Wrap(fault.Outage, "summary", errors.New("dial tcp 10.0.0.1"))
	})
	require.Contains(t, got, "cannot be read now (OUTAGE)")
	require.NotContains(t, got, "10.0.0.1")
}

// River UI works under its prefix and under the policy of the server: no script stands in its page.
func TestNewJobs(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	client, err := river.NewClient(riverpgxv5.New(dbtest.New(t)), &river.Config{Logger: log})
	require.NoError(t, err)
	ui, err := console.NewJobs(client, "/riverui", log)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	require.NoError(t, ui.Start(ctx))
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		ui.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		b, err := io.ReadAll(rec.Body)
		require.NoError(t, err)
		return rec.Code, string(b)
	}
	status, index := get("/riverui/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, index, `"/riverui`)
	for _, script := range regexp.MustCompile(`(?s)<script([^>]*)>`).FindAllStringSubmatch(index, -1) {
		require.Regexp(t, `src=|type="application/json"`, script[1])
	}
	status, queues := get("/riverui/api/queues")
	require.Equal(t, http.StatusOK, status, queues)
}
