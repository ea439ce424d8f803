package maintenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/sweep"
	"msgexchange/workers/maintenance"
)

func (r *rig) sweep(change ...func(*maintenance.SweepConfig)) *maintenance.Sweep {
	day := 24 * time.Hour
	c := maintenance.SweepConfig{Enabled: true, Policy: sweep.Policy{Days: 3, Zone: r.zone, After: map[sweep.Rule]time.Duration{
		sweep.Deleted: day, sweep.Cancelled: day, sweep.Departed: day, sweep.Arrived: day, sweep.Silent: 7 * day,
	}}}
	for _, f := range change {
		f(&c)
	}
	return maintenance.NewSweep(c, r.pool, r.store, asleep{}, slog.New(slog.DiscardHandler), func() time.Time { return r.clock })
}

// fltr is a flight of today in a schedule; extra goes into it.
func (r *rig) fltr(flid int64, mvin, extra string) string {
	sodt := strings.ToUpper(r.clock.In(r.zone).Format("02Jan061504"))
	return fmt.Sprintf(`<FLTR><FLID>%d</FLID><ALCD>CA</ALCD><FLNO>CA%d</FLNO><MVIN>%s</MVIN><SODT>%s</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>320</ACFT>%s</FLTR>`,
		flid, flid, mvin, sodt, extra)
}

// send puts a message and lets the head work on it.
func (h *headRig) send(kind, body string) {
	h.t.Helper()
	require.Equal(h.t, "SUCCEEDED", h.work(h.queue(kind, body)))
}

// queue puts a message that is new.
func (h *headRig) queue(kind, body string) int64 {
	typ, styp, _ := strings.Cut(kind, "-")
	return h.put(fmt.Sprintf(`<MSG><META><SNDR>AODB</SNDR><SEQN>%d</SEQN><DTTM>20261130010000</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		h.last+1, typ, styp, body))
}

func (h *headRig) schedule(kind string, flights ...string) {
	h.t.Helper()
	h.send("SCHD-"+kind, fmt.Sprintf(`<SCHD><RECS>%d</RECS>%s</SCHD>`, len(flights), strings.Join(flights, "")))
}

func (h *headRig) flop(styp string, flid int64, body string) {
	h.t.Helper()
	h.send("FLOP-"+styp, fmt.Sprintf(`<FLOP><FLID>%d</FLID>%s</FLOP>`, flid, body))
}

// list gives the one column of a query.
func (r *rig) list(sql string) []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), sql)
	require.NoError(r.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	return out
}

// aDay is a day's traffic, four days ago: what is over by each rule, and what is not.
func (h *headRig) aDay() {
	h.t.Helper()
	now := strings.ToUpper(h.clock.In(h.zone).Format("02Jan061504"))
	h.schedule("DNLD", h.fltr(1, "D", ""), h.fltr(2, "A", ""), h.fltr(3, "D", ""), h.fltr(4, "D", ""), h.fltr(5, "A", ""), h.fltr(6, "A", ""),
		h.fltr(7, "D", `<PSDT PSNO="1"><PSST>203</PSST></PSDT>`), h.fltr(8, "D", "<CSOP>CA</CSOP><CSFT>CA7</CSFT><MAID>7</MAID>"))
	for _, flid := range []int64{1, 2, 7, 8} {
		h.flop("ACTT", flid, "<ACTT>"+now+"</ACTT>")
	}
	h.flop("FDEL", 3, "<FDEL/>")
	h.flop("CNCL", 4, "<CNCL>"+now+"</CNCL>")
	h.exec(`UPDATE flight_schd SET updated_at = updated_at - interval '4 days', sodt = sodt - interval '4 days',
		scalars = jsonb_set(scalars::jsonb, '{sodt}', to_jsonb('2026-11-26T02:00:00+08:00'::text))::json WHERE flid = 5`)
	h.clock = h.clock.AddDate(0, 0, 4)
}

// Every rule takes its own; the history has the whole flight and what was done to it; readers of schd are told of those
// they still hold.
func TestSweep_movesFlightsOut(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	h.aDay()
	changes := r.count(`SELECT count(*) FROM flight_change WHERE flid <> 6`)

	got := all(t, r.sweep(func(c *maintenance.SweepConfig) { c.Batch = 3 }).Do)
	require.Empty(t, cmp.Diff(map[string]int64{
		"flights": 7, "tombstones": 5, "by departed": 3, "by arrived": 1, "by deleted": 1, "by cancelled": 1, "by silent": 1,
	}, got))
	require.Equal(t, []string{"1 departed v3", "2 arrived v3", "3 deleted v2", "4 cancelled v3", "5 silent v2", "7 departed v3", "8 departed v2"},
		r.list(`SELECT concat_ws(' ', flid, rule, 'v' || state_version) FROM flight_history ORDER BY flid`))
	require.Equal(t, []string{"6"}, r.list(`SELECT flid::text FROM flight_schd`))
	require.Zero(t, r.count(`SELECT count(*) FROM flight_psdt`))
	require.Equal(t, []string{"6"}, r.list(`SELECT DISTINCT flid::text FROM flight_change`))
	require.Equal(t, changes, r.count(`SELECT sum(json_array_length(changes)) FROM flight_history`))
	require.Equal(t, []string{"1 v3 TOMBSTONE", "2 v3 TOMBSTONE", "4 v3 TOMBSTONE", "5 v2 TOMBSTONE", "7 v3 TOMBSTONE"},
		r.list(`SELECT concat_ws(' ', flid, 'v' || state_version, event_type) FROM msg_event WHERE kind = 'HISTORY-SWEEP' AND state = 'PENDING' ORDER BY flid`),
		"not of the one that was deleted, nor of the child")

	lives, err := r.store.SweptLives(t.Context(), r.pool, 7)
	require.NoError(t, err)
	require.Len(t, lives, 1)
	require.Len(t, lives[0].Changes, 2)
	require.EqualValues(t, 2, lives[0].Changes[0].StateVersion, "the last first")
	var doc map[string]any
	require.NoError(t, json.Unmarshal(lives[0].Flight, &doc))
	require.Equal(t, []any{"CA8"}, doc["mafl"])
	require.Equal(t, []any{map[string]any{"psno": 1.0, "psst": "203"}}, doc["psdt"])
	require.Empty(t, all(t, r.sweep().Do), "a second run finds nothing")
}

func TestSweep_off(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.head().aDay()
	p, err := r.sweep(func(c *maintenance.SweepConfig) { c.Enabled = false }).Do(t.Context())
	require.NoError(t, err)
	require.Contains(t, p.Findings[0], "history.enabled")
	require.False(t, p.More)
	require.Equal(t, int64(8), r.count(`SELECT count(*) FROM flight_schd`))
}

// A message that was taken over before the sweep finds its flight: the sweep lets it go first.
func TestSweep_messagesGoFirst(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	h.schedule("DNLD", r.fltr(1, "D", ""), r.fltr(2, "D", ""))
	now := strings.ToUpper(r.clock.In(r.zone).Format("02Jan061504"))
	h.flop("ACTT", 1, "<ACTT>"+now+"</ACTT>")
	h.flop("ACTT", 2, "<ACTT>"+now+"</ACTT>")
	r.clock = r.clock.AddDate(0, 0, 4)

	back := h.queue("FLOP-ACTT", "<FLOP><FLID>1</FLID><ACTT/></FLOP>") // it has not left after all
	w := r.sweep()
	for range 3 {
		p, err := w.Do(t.Context())
		require.NoError(t, err)
		require.Positive(t, p.Wait)
		require.EqualValues(t, 1, p.Counts["waits"])
	}
	require.Equal(t, int64(2), r.count(`SELECT count(*) FROM flight_schd`))
	require.Equal(t, "SUCCEEDED", h.work(back))
	require.EqualValues(t, 1, all(t, w.Do)["flights"])
	require.Equal(t, []string{"1"}, r.list(`SELECT flid::text FROM flight_schd`))
}

// A message about a swept flight is one about a flight nobody knows. A schedule that is newer brings it back, one that is
// older does not, and its readers see its version go on.
func TestSweep_whatComesAfter(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	h.schedule("DNLD", r.fltr(1, "D", ""))
	h.last++ // message 2 comes late
	h.flop("ACTT", 1, "<ACTT>30NOV260200</ACTT>")
	r.clock = r.clock.AddDate(0, 0, 4)
	require.EqualValues(t, 1, all(t, r.sweep().Do)["flights"])

	events := r.count(`SELECT count(*) FROM msg_event`)
	h.flop("STND", 1, "<STND>203</STND>")
	h.flop("FDEL", 1, "<FDEL/>")
	last := h.last
	h.last = 1
	h.schedule("ADFT", r.fltr(1, "D", ""))
	h.last = last
	require.Zero(t, r.count(`SELECT count(*) FROM flight_schd`))
	require.Equal(t, events, r.count(`SELECT count(*) FROM msg_event`))

	h.schedule("ADFT", r.fltr(1, "D", ""))
	require.Equal(t, []string{"v4 2026-12-04"}, r.list(`SELECT concat_ws(' ', 'v' || state_version, operation_day) FROM flight_schd`), "above the tombstone's 3")
	h.flop("FDEL", 1, "<FDEL/>")
	r.clock = r.clock.AddDate(0, 0, 4)
	require.EqualValues(t, 1, all(t, r.sweep().Do)["flights"])
	lives, err := r.store.SweptLives(t.Context(), r.pool, 1)
	require.NoError(t, err)
	require.Len(t, lives, 2)
	require.NotNil(t, lives[0].DeletedAt)
}

// One flight that cannot be written into the history stays, and keeps no other.
func TestSweep_badRecordStaysAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	h.aDay()
	r.exec(`INSERT INTO flight_history (flid, operation_day, state_version, rule, doc, provenance, swept_at)
		SELECT flid, operation_day, state_version + 1, 'silent', '{}', '{}', now() FROM flight_schd WHERE flid = 2`)
	p, err := r.sweep().Do(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(map[string]int64{
		"flights": 6, "tombstones": 4, "by departed": 3, "by deleted": 1, "by cancelled": 1, "by silent": 1, "refused": 1,
	}, p.Counts))
	require.Len(t, p.Findings, 1)
	require.Contains(t, p.Findings[0], "flight 2 stays")
	require.Equal(t, []string{"2", "6"}, r.list(`SELECT flid::text FROM flight_schd ORDER BY flid`))
}

// Messages are worked on while two sweepers go over the same flights and one's connection is cut again and again: each
// flight is in one place, whole, with all that was done to it, and told of once.
func TestSweep_underTrafficKilledAndTwice(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	const flights = 300
	var records []string
	for flid := range int64(flights) {
		records = append(records, r.fltr(flid+1, "D", "<ACTT>30NOV260200</ACTT>"))
	}
	h.schedule("DNLD", records...)
	r.clock = r.clock.AddDate(0, 0, 4)

	few := func(c *maintenance.SweepConfig) { c.Batch = 10 }
	done, kills := make(chan int), make(chan int)
	for range 2 {
		go func() { done <- drain(t.Context(), r.sweep(few)) }()
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { kills <- r.killSweeps(ctx, 5) }()
	for i := range int64(2 * flights) {
		h.flop("STND", i%flights+1, fmt.Sprintf("<STND>%d</STND>", i))
	}
	failures := <-done + <-done
	stop()
	require.Positive(t, <-kills)
	require.Positive(t, failures, "a kill hit a batch")
	require.Zero(t, r.count(`SELECT count(*) FROM flight_schd`), "all were over")
	require.Equal(t, int64(flights), r.count(`SELECT count(*) FROM flight_history`))
	require.Equal(t, int64(flights), r.count(`SELECT count(DISTINCT flid) FROM flight_history`))
	require.Zero(t, r.count(`SELECT count(*) FROM flight_change`))
	require.Equal(t, int64(flights), r.count(`SELECT count(*) FROM msg_event WHERE kind = 'HISTORY-SWEEP'`))
	require.Zero(t, r.count(`SELECT count(*) FROM flight_history h
		WHERE (SELECT max((c ->> 'state_version')::bigint) FROM json_array_elements(h.changes) c) <> (h.doc ->> 'stateVersion')::bigint
		   OR json_array_length(h.changes) <> (h.doc ->> 'stateVersion')::bigint OR h.state_version <> (h.doc ->> 'stateVersion')::bigint + 1`),
		"each with all its changes, none lost and none after it went")
	told := r.count(`SELECT sum(json_array_length(changes)) FROM flight_history`)
	require.Equal(t, told, r.count(`SELECT count(*) FROM msg_event WHERE target = 'KAFKA:msg'`), "what was told happened, and what happened was told")
}

// drain sweeps to the end, through failures, and gives how many there were.
func drain(ctx context.Context, w *maintenance.Sweep) (failures int) {
	for more := true; more && ctx.Err() == nil; {
		p, err := w.Do(ctx)
		if err != nil {
			failures++
		}
		more = err != nil || p.More || p.Wait > 0
	}
	return failures
}

// killSweeps cuts the connections of batches under way until it hit some, or ctx ends; it gives how many it hit.
func (r *rig) killSweeps(ctx context.Context, most int) (hits int) {
	for hits < most && ctx.Err() == nil {
		tag, err := r.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
			AND (query LIKE '%MoveToHistory%' OR query LIKE '%DeleteFlights%') AND state <> 'idle' AND pid <> pg_backend_pid()`)
		if err == nil {
			hits += int(tag.RowsAffected())
		}
	}
	return hits
}
