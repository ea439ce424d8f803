package poll

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/workers/drain"
)

func positions(ids ...int64) []message.Position {
	out := make([]message.Position, len(ids))
	for i, id := range ids {
		out[i].ID = id
	}
	return out
}

// TestK14_Truncate: ids that start again stop the lane, told once, and nothing is taken for a duplicate.
func TestK14_Truncate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		received string
		again    []int64
	}{
		"in the same second, other text": {"2026-11-30 08:59:00", []int64{1}},
		"later":                          {"2026-11-30 09:10:00", []int64{1, 2}},
		"beyond the watermark already":   {"2026-11-30 08:59:00", []int64{1, 2, 3, 4, 5, 6, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.putAll(1, 2, 3, 4, 5)
			r.drainAll()
			r.Exec("TRUNCATE TABLE cminmsgs")
			for _, id := range tc.again {
				r.Put(id, "<MSG>again</MSG>", tc.received)
			}
			r.clock = r.clock.Add(time.Minute)
			r.drainAll()
			r.clock = r.clock.Add(time.Minute)
			require.Equal(t, drain.Next{}, r.step(), "nothing more to do")
			require.Equal(t, inbox.IDRegression, r.at().Stopped)
			require.Equal(t, 1, strings.Count(r.log.String(), "inbox stopped"))
			require.Contains(t, r.log.String(), "level=ERROR msg=\"inbox stopped\"")
			pending, err := r.poll.Pending(t.Context(), r.pool)
			require.NoError(t, err)
			require.False(t, pending)

			r.restart(func(*Config) {})
			r.putAll(100)
			require.Equal(t, drain.Next{}, r.step(), "also after a restart")
			require.NotContains(t, r.queued(), "100")
		})
	}
}

// TestK14_CleanedUp: an owner that deletes rows, the newest too, is no regression; the lane goes on.
func TestK14_CleanedUp(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2, 3)
	r.drainAll()
	r.Exec("DELETE FROM cminmsgs WHERE CMINMSGS_ID > 1")
	for range 3 {
		r.clock = r.clock.Add(time.Minute)
		r.drainAll()
	}
	require.Empty(t, r.at().Stopped)
	require.Equal(t, 1, strings.Count(r.log.String(), "mailbox ends below the watermark"), "told once")
	r.Exec("DELETE FROM cminmsgs")
	r.putAll(4)
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3", "4"}, r.queued())
}

func TestCutover(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from   inbox.Cutover
		w      int64
		queued []string
	}{
		"min":  {inbox.CutoverMin, 12, []string{"11", "12"}},
		"max":  {inbox.CutoverMax, 12, []string{}},
		"id":   {"11", 12, []string{"12"}},
		"zero": {inbox.CutoverZero, 0, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.putAll(11, 12)
			r.restart(func(c *Config) { c.Cutover = tc.from })
			r.drainAll()
			require.Equal(t, tc.w, r.at().Cursor.W)
			require.Equal(t, tc.queued, append([]string{}, r.queued()...))
			require.False(t, r.at().SeededAt.IsZero())
			require.NotContains(t, r.log.String(), "ids below the lowest are waited for")

			r.restart(func(c *Config) { c.Cutover = inbox.CutoverMax })
			r.putAll(13)
			r.drainAll()
			r.clock = r.clock.Add(delay)
			r.drainAll()
			require.Equal(t, int64(13), r.at().Cursor.W)
			require.Contains(t, r.queued(), "13", "seeding again would have skipped it")
			require.Empty(t, r.at().Stopped)
		})
	}
}

// TestCutover_afterAll: the first start without a cut-over waits for the ids below the lowest and says which setting avoids
// that; a restart with it begins at once, and once something was taken over it is too late.
func TestCutover_afterAll(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(11, 12)
	r.drainAll()
	require.Contains(t, r.log.String(), "ids below the lowest are waited for")
	require.Empty(t, r.queued())
	r.restart(func(c *Config) { c.Cutover = inbox.CutoverMin })
	r.drainAll()
	require.Equal(t, []string{"11", "12"}, r.queued())
	require.Empty(t, r.at().Cursor.Holes)

	late := setup(t)
	late.putAll(1)
	late.drainAll()
	late.putAll(2)
	late.restart(func(c *Config) { c.Cutover = inbox.CutoverMax })
	late.drainAll()
	require.Equal(t, []string{"1", "2"}, late.queued(), "seeding now would have skipped 2")
}

// TestCutoverUnderTraffic: a writer who had his id before the cut-over and commits after it is late; he does not stop the
// lane, nor is he lost.
func TestCutoverUnderTraffic(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(11, 13)
	r.restart(func(c *Config) { c.Cutover = inbox.CutoverMax })
	r.drainAll()
	r.Put(12, "<MSG/>", "2026-11-30 09:00:01")
	r.putAll(14)
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, []string{"12 late", "14"}, r.queued())
	require.Empty(t, r.at().Stopped)
	r.Put(5, "<MSG/>", "2026-11-30 09:30:00") // far below: nobody was missing there
	r.Exec("DELETE FROM cminmsgs WHERE CMINMSGS_ID > 5")
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, inbox.IDRegression, r.at().Stopped)
}

// TestCutoverRefused: a lane that has begun cannot be seeded.
func TestCutoverRefused(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2)
	r.drainAll()
	r.putAll(3)
	r.restart(func(c *Config) { c.Cutover = inbox.CutoverMax })
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3"}, r.queued())
	require.Contains(t, r.log.String(), "cut-over refused")
}

// values gathers what a registry tells, label values after the name.
func values(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t)
	reg := prometheus.NewPedanticRegistry()
	r.deps.Metrics = NewMetrics(reg, r.pool, r.deps.Store, lane)
	r.restart(func(*Config) {})
	require.NotContains(t, values(t, reg), "msgx_watermark", "what is unknown is absent")

	r.clock = time.Now().Truncate(time.Millisecond)
	r.putAll(1, 2, 5)
	r.drainAll()
	require.Equal(t, map[string]float64{
		"msgx_watermark": 2, "msgx_watermark_lag": 3, "msgx_hole_open": 1, "msgx_hole_aged_out_total": 0, "msgx_mailbox_edited_total": 0,
		"msgx_late_arrival_detected_total": 0, "msgx_mailbox_bad_dates_total": 0, "msgx_inbox_stopped id-regression": 0,
		"msgx_poll_last_success_timestamp": float64(r.clock.UnixMilli()) / 1000,
	}, values(t, reg))

	r.clock = r.clock.Add(delay)
	r.drainAll()
	r.putAll(3)
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	r.Exec("UPDATE cminmsgs SET CMINMSGS_CLOB_MSG = 'changed' WHERE CMINMSGS_ID = 5")
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	got := values(t, reg)
	require.InDelta(t, 1, got["msgx_hole_aged_out_total"], 0)
	require.InDelta(t, 1, got["msgx_late_arrival_detected_total"], 0)
	require.InDelta(t, 1, got["msgx_inbox_stopped id-regression"], 0)
}
