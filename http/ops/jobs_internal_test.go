package ops

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/http/access"
)

// Whatever is changed through River UI is on record before it is done; without a record nothing is done.
func TestAuditedJobs(t *testing.T) {
	t.Parallel()
	a, _, pool := desk(t)
	var got []string
	jobs := a.AuditedJobs(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", string(b), err))
	}))
	ask := func(method, body string) int {
		ctx := access.With(t.Context(), access.Caller{Name: "olga", Role: access.Operator, Peer: netip.MustParseAddr("10.1.2.3")})
		rec := httptest.NewRecorder()
		jobs.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, method, "/riverui/api/jobs/cancel", strings.NewReader(body)))
		return rec.Code
	}
	require.Equal(t, http.StatusOK, ask(http.MethodGet, ""))
	require.Equal(t, http.StatusOK, ask(http.MethodPost, `{"ids":["7"]}`))
	row := audited(t, pool)
	require.Equal(t, "olga", row.Actor)
	require.Equal(t, "10.1.2.3", row.Peer)
	require.Equal(t, "jobs", row.Action)
	require.JSONEq(t, `{"method":"POST","path":"/riverui/api/jobs/cancel","body":{"ids":["7"]}}`, string(row.Scope))
	require.Equal(t, http.StatusRequestEntityTooLarge, ask(http.MethodPut, strings.Repeat(" ", maxOrderBytes+1)))

	pool.Close()
	require.Equal(t, http.StatusServiceUnavailable, ask(http.MethodPost, `{"ids":["8"]}`))
	require.Equal(t, []string{"GET <nil>", `POST {"ids":["7"]}<nil>`}, got)
}
