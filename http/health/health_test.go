package health_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"msgexchange/http/health"
)

// ready asks /readyz and gives status and body.
func ready(t *testing.T, c *health.Cache, query string) (int, health.Report) {
	t.Helper()
	rec := httptest.NewRecorder()
	g, _ := gin.CreateTestContext(rec)
	g.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz"+query, http.NoBody)
	require.NoError(t, c.Ready(g))
	var r health.Report
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &r))
	return rec.Code, r
}

func says(check health.Check) func(context.Context) health.Check {
	return func(context.Context) health.Check { return check }
}

func TestReady(t *testing.T) {
	t.Parallel()
	ok, down := health.Fine(), health.Failed("refused")
	degraded := health.Check{State: health.Degraded, Detail: "topic schd is missing"}
	cases := []struct {
		name            string
		postgres, kafka health.Check
		want            health.State
		status, strict  int
	}{
		{"all is well", ok, ok, health.OK, 200, 200},
		{"kafka away", ok, down, health.Degraded, 200, 503},
		{"kafka degraded", ok, degraded, health.Degraded, 200, 503},
		{"postgres away", down, ok, health.Down, 503, 503},
		{"both away", down, down, health.Down, 503, 503},
		{"postgres degraded", degraded, ok, health.Degraded, 200, 503},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cache := health.New(time.Now,
					health.Probe{Name: "kafka", Look: says(c.kafka)},
					health.Probe{Name: "postgres", Critical: true, Look: says(c.postgres)})
				run(t, cache)
				status, report := ready(t, cache, "")
				require.Equal(t, c.want, report.Status)
				require.Equal(t, c.status, status)
				require.Equal(t, c.kafka.State, report.Checks["kafka"].State)
				require.Equal(t, c.kafka.Detail, report.Checks["kafka"].Detail)
				for query, want := range map[string]int{
					"?strict=1": c.strict, "?strict=true": c.strict, "?strict": c.strict, "?strict=yes": c.strict, "?strict=0": c.status, "?strict=false": c.status,
				} {
					got, _ := ready(t, cache, query)
					require.Equal(t, want, got, query)
				}
			})
		})
	}
}

// run starts the cache and returns when it has looked once; it ends with the test.
func run(t *testing.T, cache *health.Cache) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	synctest.Wait()
}

func TestReady_beforeTheFirstLook(t *testing.T) {
	t.Parallel()
	status, report := ready(t, health.New(time.Now, health.Probe{Name: "postgres", Critical: true}), "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, health.Down, report.Status)
}

func TestRun_looksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		cache := health.New(time.Now, health.Probe{Name: "postgres", Critical: true, Look: func(context.Context) health.Check {
			if back.Load() {
				return health.Fine()
			}
			return health.Failed("refused")
		}})
		run(t, cache)
		require.Equal(t, health.Down, cache.Report().Status)
		back.Store(true)
		wait(2 * time.Second)
		require.Equal(t, health.OK, cache.Report().Status)
	})
}

// A probe that hangs ends with its deadline; one that does not heed it is taken for down, and holds up nobody.
func TestRun_hangingProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cache := health.New(time.Now,
			health.Probe{Name: "deaf", Look: func(context.Context) health.Check { <-release; return health.Fine() }},
			health.Probe{Name: "kafka", Look: func(ctx context.Context) health.Check { <-ctx.Done(); return health.Failed("timed out") }},
			health.Probe{Name: "broken", Look: func(context.Context) health.Check { panic("a defect") }},
			health.Probe{Name: "postgres", Critical: true, Look: says(health.Fine())})
		run(t, cache)
		wait(20 * time.Second)
		checks := cache.Report().Checks
		require.Equal(t, "no answer for 20s", checks["deaf"].Detail)
		require.Equal(t, "timed out", checks["kafka"].Detail)
		require.Contains(t, checks["broken"].Detail, "a defect")
		require.Equal(t, health.OK, checks["postgres"].State)
		require.Equal(t, health.Degraded, cache.Report().Status)
		close(release)
	})
}

// wait lets the bubble's clock run.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
