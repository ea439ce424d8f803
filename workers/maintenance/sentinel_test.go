package maintenance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"msgexchange/workers/maintenance"
)

// marks is a mailbox that has lost some marks, or is away.
type marks struct {
	lost []int64
	away bool
	seen []int64
}

func (m *marks) Unmarked(_ context.Context, ids []int64) ([]int64, error) {
	if m.away {
		return nil, errors.New("away")
	}
	m.seen = append(m.seen, ids...)
	return m.lost, nil
}

func (r *rig) sentinel(log *bytes.Buffer, mailbox maintenance.MarkReader, change ...func(*maintenance.SentinelConfig)) *maintenance.Sentinel {
	c := maintenance.SentinelConfig{Lane: "default", Share: 1, Marks: true, Kept: 90 * 24 * time.Hour, Zone: r.zone}
	for _, f := range change {
		f(&c)
	}
	return maintenance.NewSentinel(c, r.pool, r.store, mailbox, slog.New(slog.NewTextHandler(log, nil)), func() time.Time {
		r.clock = r.clock.Add(time.Second) // a look later than every look before
		return r.clock
	})
}

// differences lists what is open.
func (r *rig) differences() []string {
	r.t.Helper()
	return r.list(`SELECT concat_ws(' ', flid, about, detail) FROM consistency_difference ORDER BY flid, about`)
}

// What the pipeline makes agrees with itself: live, deleted, linked, archived, swept and come again.
func TestSentinel_findsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	h.schedule("DNLD", r.fltr(1, "D", ""), r.fltr(2, "D", "<CSOP>CA</CSOP><CSFT>CA1</CSFT><MAID>1</MAID>"), r.fltr(3, "A", `<PSDT PSNO="1"><PSST>203</PSST></PSDT>`), r.fltr(4, "A", ""))
	h.flop("STND", 2, "<STND>1</STND>")
	h.flop("FDEL", 4, "<FDEL/>")
	h.flop("STND", 3, "<STND>208</STND>")
	h.flop("STND", 3, "<STND>208</STND>") // says nothing new
	log, mailbox := &bytes.Buffer{}, &marks{}
	look := func() map[string]int64 { return all(t, r.sentinel(log, mailbox).Do) }
	require.Empty(t, cmp.Diff(map[string]int64{"flights": 4, "differences": 0}, look()))
	require.Empty(t, mailbox.seen, "no mark is written yet")

	r.exec(`UPDATE proc_state SET backfill_at = updated_at, backfill_next_at = NULL`)
	r.exec(`UPDATE msg_event SET state = 'SENT'`)
	r.clock = r.clock.AddDate(0, 0, 10)
	require.Positive(t, all(t, r.archive().Do)["messages"])
	require.Zero(t, look()["differences"], "archived")
	require.NotEmpty(t, mailbox.seen)
	require.Positive(t, all(t, r.sweep().Do)["flights"])
	h.schedule("ADFT", r.fltr(1, "D", ""))
	require.Empty(t, cmp.Diff(map[string]int64{"flights": 1, "differences": 0}, look()))
	require.Empty(t, r.differences())
	require.Empty(t, log.String())
}

// Whatever is changed behind our back is found once, shown, counted, and forgotten when it is mended.
func TestSentinel_findsAndForgets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoil, mend, want string }{
		"a flight that cannot be read": {
			`UPDATE flight_schd SET scalars = '{"nosuch":1}' WHERE flid = 1`, `UPDATE flight_schd SET scalars = (SELECT scalars FROM kept)`, "1 state cannot be read",
		},
		"a value":            {`UPDATE flight_schd SET abdg = 'B9' WHERE flid = 1`, `UPDATE flight_schd SET abdg = NULL`, "1 event event"},
		"a version":          {`UPDATE flight_schd SET state_version = 9 WHERE flid = 1`, `UPDATE flight_schd SET state_version = 1`, "1 event it is at version 9"},
		"an event":           {`UPDATE msg_event SET state_version = 9 WHERE target = 'KAFKA:schd'`, `UPDATE msg_event SET state_version = 1`, "1 event it is at version 1, event"},
		"a deletion by hand": {`UPDATE flight_schd SET published = false WHERE flid = 1`, `UPDATE flight_schd SET published = true`, "1 event readers of schd"},
		"a link":             {`UPDATE flight_schd SET mafl = '{CA2}' WHERE flid = 1`, `UPDATE flight_schd SET mafl = '{}'`, "1 "},
		"the history":        {`UPDATE flight_change SET state_version = 7`, `UPDATE flight_change SET state_version = 1`, "1 history"},
		"a message":          {`UPDATE proc_state SET state = 'DEAD'`, `UPDATE proc_state SET state = 'SUCCEEDED'`, "1 message message 1"},
		"a mark owed to nobody": {
			`UPDATE proc_state SET backfill_at = NULL, backfill_next_at = NULL`, `UPDATE proc_state SET backfill_at = updated_at`, "1 mark message 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.head().schedule("DNLD", r.fltr(1, "D", ""))
			r.exec(`UPDATE proc_state SET backfill_at = updated_at, backfill_next_at = NULL`)
			r.exec(`CREATE TABLE kept AS SELECT scalars FROM flight_schd`)
			log := &bytes.Buffer{}
			look := func() { all(t, r.sentinel(log, &marks{}, func(c *maintenance.SentinelConfig) { c.Share = 0.0001 }).Do) }
			whole := func() { all(t, r.sentinel(log, &marks{}).Do) }
			whole()
			require.Empty(t, r.differences())

			r.exec(c.spoil)
			whole()
			whole()
			require.NotEmpty(t, r.differences())
			require.Contains(t, r.differences()[0], c.want)
			require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("inconsistency found"))/len(r.differences()), "told once: %s", log)
			require.Contains(t, log.String(), "level=ERROR")

			r.exec(c.mend)
			look() // flights in doubt are looked at whatever the sample
			require.Empty(t, r.differences())
			require.Contains(t, log.String(), "inconsistency gone")
		})
	}
}

// Events that nobody could find, because they were written with the triggers off, go out, and somebody is told.
func TestSentinel_findsWaitingEvents(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.head().schedule("DNLD", r.fltr(1, "D", ""))
	waiting := r.count(`SELECT count(*) FROM msg_event WHERE state = 'PENDING'`)
	require.Positive(t, waiting)
	r.exec(`DELETE FROM event_span`)
	log := &bytes.Buffer{}
	require.Equal(t, waiting, all(t, r.sentinel(log, &marks{}).Do)["eventsFound"])
	require.Contains(t, log.String(), "waiting events found")
	require.Equal(t, waiting, r.count(`SELECT sum(amount) FROM event_span`))
	require.NotContains(t, all(t, r.sentinel(log, &marks{}).Do), "eventsFound")
}

// A mark that is gone in the mailbox is found; without the mailbox the rest is compared all the same; a lane that is stopped
// over its ids, and a shadow, ask for none.
func TestSentinel_marks(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.head().schedule("DNLD", r.fltr(1, "D", ""))
	r.exec(`UPDATE proc_state SET backfill_at = updated_at, backfill_next_at = NULL`)
	log := &bytes.Buffer{}
	require.Empty(t, cmp.Diff(map[string]int64{"flights": 1, "differences": 0, "marksUnread": 1}, all(t, r.sentinel(log, &marks{away: true}).Do)))
	require.Contains(t, log.String(), "marks not compared")

	shadow := func(c *maintenance.SentinelConfig) { c.Marks = false }
	require.Zero(t, all(t, r.sentinel(log, nil, shadow).Do)["differences"])
	r.exec(`UPDATE inbox_cursor SET stopped_reason = 'id-regression', stopped_at = now()`)
	require.Zero(t, all(t, r.sentinel(log, &marks{lost: []int64{1}}).Do)["differences"])
	r.exec(`UPDATE inbox_cursor SET stopped_reason = NULL, stopped_at = NULL`)
	require.EqualValues(t, 1, all(t, r.sentinel(log, &marks{lost: []int64{1}}).Do)["differences"])
	require.Equal(t, []string{"1 mark message 1 was marked, and in the mailbox it is not"}, r.differences())
}

// Pages, chunks and the sample: a tenth of many flights, each page once, those in doubt all.
func TestSentinel_walksAll(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.head()
	r.exec(`INSERT INTO flight_schd (flid, operation_day, state_version, last_msg_id, flno, mvin, sodt, created_at, updated_at, scalars)
		SELECT n, '2026-11-30', 1, n, 'CA', 'D', $1, $1, $1, json_build_object('flno', 'CA', 'mvin', 'D', 'sodt', '2026-11-30T10:00:00+08:00') FROM generate_series(1, 6000) n`, r.clock)
	log := &bytes.Buffer{}
	got := all(t, r.sentinel(log, &marks{}, func(c *maintenance.SentinelConfig) { c.Share = 0.1 }).Do)
	require.InDelta(t, 600, got["flights"], 120)
	require.Equal(t, got["flights"], got["differences"], "their messages are not there")
	got = all(t, r.sentinel(log, &marks{}).Do)
	require.Greater(t, got["flights"], int64(6500), "each once, and those in doubt first")
	require.Equal(t, int64(6000), r.count(`SELECT count(*) FROM consistency_difference`))
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t)
	reg := prometheus.NewPedanticRegistry()
	maintenance.NewMetrics(reg, r.pool, r.store, func() time.Time { return r.clock })
	value := func(name, label string) string {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, one := range f.GetMetric() {
				if f.GetName() == name && one.GetLabel()[0].GetValue() == label {
					return fmt.Sprint(one.GetGauge().GetValue())
				}
			}
		}
		return "absent"
	}
	require.Equal(t, "0", value("msgx_consistency_differences", "event"))
	require.Equal(t, "absent", value("msgx_maintenance_last_success_timestamp", "archive"))

	r.exec(`INSERT INTO consistency_difference (flid, about, detail, first_seen_at, last_seen_at) VALUES (1, 'event', '', now(), now()), (2, 'event', '', now(), now())`)
	r.exec(`INSERT INTO periodic_run (name, due_up_to, error, succeeded_at) VALUES ('archive', now(), 'no room', to_timestamp(7)), ('snap-log', now(), NULL, NULL)`)
	require.Equal(t, "0", value("msgx_consistency_differences", "event"), "read every ten seconds")
	r.clock = r.clock.Add(10 * time.Second)
	require.Equal(t, "2", value("msgx_consistency_differences", "event"))
	require.Equal(t, "7", value("msgx_maintenance_last_success_timestamp", "archive"))
	require.Equal(t, "1", value("msgx_maintenance_failing", "archive"))
	require.Equal(t, "0", value("msgx_maintenance_failing", "snap-log"))
	families, err := reg.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	r.pool.Close()
	r.clock = r.clock.Add(10 * time.Second)
	require.Equal(t, "absent", value("msgx_consistency_differences", "event"), "what cannot be read is left out")
}
