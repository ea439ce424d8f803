package poll

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func countOf(r *rig, event string) int { return strings.Count(r.log.String(), event) }

// TestPassedHolesAreForgotten: they are remembered for a week and the newest thousand of them, so that a lane that runs for
// years does not grow; until then a late row is found.
func TestPassedHolesAreForgotten(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 3)
	r.drainAll()
	r.clock = r.clock.Add(delay)
	r.drainAll()
	require.Equal(t, "1", r.one("SELECT count(*)::text FROM inbox_hole"))
	r.clock = r.clock.Add(passedKeep)
	r.drainAll()
	require.Equal(t, "1", r.one("SELECT count(*)::text FROM inbox_hole"), "not yet")
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, "0", r.one("SELECT count(*)::text FROM inbox_hole"))

	r.exec(`INSERT INTO inbox_hole (lane, first_id, last_id, first_seen_at, released_at)
		SELECT $1, -10 * g, -10 * g + 1, $2, $2 FROM generate_series(1, 1500) g`, lane, r.clock)
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, "1000 -10000", r.one("SELECT count(*) || ' ' || min(first_id) FROM inbox_hole"), "the newest stay")
}

// TestK13_SecondWriter: where ids come in steps, two writers share them by their offsets. What the second one commits late
// lies in gaps smaller than the step, which are no holes; it is found all the same (K11).
func TestK13_SecondWriter(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.deps.Server = steps{r.Desk}
	r.restart(func(*Config) {})
	r.putAll(3, 6, 9)
	r.drainAll()
	require.Equal(t, []string{"3", "6", "9"}, r.queued(), "no wait")
	r.Put(5, "<MSG/>", "2026-11-30 09:00:30") // received after everything up to W
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, []string{"3", "5 late", "6", "9"}, r.queued())
	require.Equal(t, 1, countOf(r, "late arrival"))
	require.Empty(t, r.at().Stopped)

	r.Exec("TRUNCATE TABLE cminmsgs")
	r.Put(1, "<MSG/>", "2026-11-30 09:03:00")
	r.Put(4, "<MSG/>", "2026-11-30 09:03:00")
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.NotEmpty(t, r.at().Stopped, "ids given out again are no late rows, whatever their offset")
}
