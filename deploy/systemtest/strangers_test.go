package systemtest

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// K28, on the real binary with everything wired: for callers from outside there is nothing but whether we live. A token counts
// from when it stands in the file, and no longer than it does; what an operator does by River UI is on record.
func TestK28_strangersAndTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { require.NoError(t, os.WriteFile(tokens, []byte(text), 0o600)) }
	write("zebra-7f3a olga operator\n")
	p := w.start(t, "guarded", "MSGX_HTTP_TRUSTED_CIDRS=10.0.0.0/8", "MSGX_HTTP_TOKENS_FILE="+tokens)
	ask := func(method, path, token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, p.address()+path, strings.NewReader(`{"ids":[1],"reason":"x"}`))
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", "10.1.2.3")
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, path := range []string{
			"/", "/readyz", "/metrics", "/openapi.json", "/flights", "/flights/1", "/all/flights", "/refdata", "/ops/summary", "/ops/messages", "/ops/messages/1",
			"/ops/events", "/ops/audit", "/ops/replay", "/ops/lane/reseed", "/cminmsgs/send", "/schd/sync", "/riverui/", "/riverui/api/jobs", "/riverui/api/jobs/cancel", "/nowhere",
		} {
			for _, token := range []string{"", "wrong"} {
				require.Contains(t, []int{401, 403, 404}, ask(method, path, token), "%s %s %q", method, path, token)
			}
		}
	}
	require.Equal(t, http.StatusOK, ask("GET", "/healthz", ""))
	require.Equal(t, http.StatusOK, ask("GET", "/ops/audit", "zebra-7f3a"))
	require.Equal(t, http.StatusOK, ask("PUT", "/riverui/api/queues/poll/pause", "zebra-7f3a"))
	require.Equal(t, http.StatusOK, ask("PUT", "/riverui/api/queues/poll/resume", "zebra-7f3a"))
	require.Equal(t, int64(2), w.number(t, "SELECT count(*) FROM ops_audit WHERE actor = 'olga' AND action = 'jobs'"))

	write("zebra-91cc rita reader\n")
	require.Eventually(t, func() bool { return ask("GET", "/ops/summary", "zebra-91cc") == http.StatusOK }, 20*time.Second, 100*time.Millisecond)
	require.Equal(t, http.StatusUnauthorized, ask("GET", "/ops/audit", "zebra-7f3a"), "taken back")
	require.Equal(t, http.StatusForbidden, ask("GET", "/ops/audit", "zebra-91cc"))
	require.NotContains(t, p.log.String(), "zebra")
	require.Zero(t, w.number(t, "SELECT count(*) FROM proc_state"), "nothing was put in")
}
