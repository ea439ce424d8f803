package systemtest

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

// A shadow beside the live system, on the same mailbox: it comes to the same flights and changes, on topics of its own, and
// touches nothing of the outside. compare proves it, and finds what is made different (contract §8.30).
func TestShadow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.kafka.CreateTopic("shadow.msg", 3, nil))
	require.NoError(t, w.kafka.CreateTopic("shadow.schd", 3, nil))
	ownPG := "MSGX_PG_DSN=" + dbtest.DSN(t)
	shadow := w.start(t, "shadow", "MSGX_MODE=shadow", ownPG)
	w.put(t, schedule(1, 1, 3))
	w.put(t, flop(2, 1, "REMC", "行李"))
	w.put(t, "<MSG><broken>")
	eventually(t, 30*time.Second, func() error { return summaryIs(t, shadow, `"liveFlights":3`) })
	require.Zero(t, w.marked(t), "a shadow never marks")

	live := w.start(t, "live")
	w.settled(t, 3, 30*time.Second)
	require.Empty(t, cmpTopics(t, w, "msg"))
	report := w.command(t, "compare", []string{"compare", "--tolerance", tolerance(t), live.address() + "/all/flights", shadow.address() + "/all/flights"})
	require.Zero(t, report.exit(60*time.Second), report.log.String())

	for path, body := range map[string]string{
		"/cminmsgs/send": schedule(9, 9, 1), "/schd/sync": `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59"}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shadow.address()+path, bytes.NewBufferString(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", map[bool]string{true: "application/json", false: "text/xml"}[path == "/schd/sync"])
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, http.StatusForbidden, resp.StatusCode, path)
	}
	var asked int
	require.NoError(t, w.mailbox.QueryRowContext(t.Context(), "SELECT count(*) FROM coutmsgs").Scan(&asked))
	require.Zero(t, asked)

	// The shadow is stopped and the live system goes on: that is a difference, and it lasts.
	shadow.kill()
	w.put(t, flop(3, 2, "REMC", "only live"))
	w.settled(t, 4, 30*time.Second)
	eventually(t, 15*time.Second, func() error { return summaryIs(t, live, `"liveFlights":3`) })
	differs := w.command(t, "compare", []string{"compare", "--again", "100ms", "kafka:msg", "kafka:shadow.msg"})
	require.Equal(t, 1, differs.exit(60*time.Second), differs.log.String())
	require.Contains(t, differs.log.String(), "only on the left")

	// Neither mode starts on the other's database.
	for _, env := range [][]string{{"MSGX_MODE=shadow"}, {ownPG}} {
		p := w.start(t, "wrong", env...)
		require.Equal(t, 1, p.exit(30*time.Second))
		require.Contains(t, p.log.String(), "other mode")
	}
}

// tolerance explains what two systems cannot have in common.
func tolerance(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tolerance.yaml")
	require.NoError(t, os.WriteFile(name, []byte("- { field: updatedAt, why: each system writes its own moment }\n"), 0o600))
	return name
}

// cmpTopics compares a topic with the shadow's and gives what was said when they differ.
func cmpTopics(t *testing.T, w *world, topic string) string {
	t.Helper()
	p := w.command(t, "compare", []string{"compare", "--again", "500ms", "kafka:" + topic, "kafka:shadow." + topic})
	if p.exit(60*time.Second) == 0 {
		return ""
	}
	return p.log.String()
}

// summaryIs asks for a piece of the summary.
func summaryIs(t *testing.T, p *pod, piece string) error {
	t.Helper()
	_, body := get(t, p.address()+"/ops/summary")
	if !strings.Contains(body, piece) {
		return &notYet{body}
	}
	return nil
}

// notYet says what there was instead.
type notYet struct{ body string }

func (n *notYet) Error() string { return "not yet: " + n.body }
