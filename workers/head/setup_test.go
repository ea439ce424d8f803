package head_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
	"msgexchange/workers/drain"
	"msgexchange/workers/head"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

const lane = "default"

// rig is a head worker on a real PostgreSQL, with its own clock; it is its own mailbox and waker.
type rig struct {
	t       *testing.T
	pool    *pgxpool.Pool
	clock   time.Time
	log     *bytes.Buffer
	metrics *prometheus.Registry
	fence   *lease.Fence
	config  head.Config
	deps    head.Deps
	head    *head.Head

	last int64 // newest mailbox id

	mailbox map[int64]string     // texts that only the mailbox has
	onText  func(id int64) error // asked before the mailbox answers; nil: nothing
	onWake  func(pgx.Tx) error   // the last thing in a transaction of the head; nil: nothing
	woken   map[jobs.Role]int    // wake-ups inside transactions, also of those rolled back
	rung    map[jobs.Role]int    // bells after commits
}

func setup(t *testing.T, change ...func(*head.Config)) *rig {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	r := &rig{
		t: t, pool: dbtest.New(t), clock: time.Date(2026, 3, 18, 1, 0, 0, 0, time.UTC), log: &bytes.Buffer{}, metrics: prometheus.NewRegistry(),
		mailbox: map[int64]string{}, woken: map[jobs.Role]int{}, rung: map[jobs.Role]int{},
	}
	r.config = head.Config{
		Lane: lane, Batch: 100, Marks: true, Retry: retry.Defaults(), Identity: message.IdentityDefaults(),
		Decode: sis.Options{Zone: zone, Ignore: sis.IgnoreRules{"LDM-*", "EROR-*"}},
		Flight: flight.Options{Zone: zone, CutoffHour: 4},
	}
	for _, f := range change {
		f(&r.config)
	}
	r.deps = head.Deps{
		Pool: r.pool, Store: store.New(zone), Mailbox: r, Waker: r, Metrics: head.NewMetrics(r.metrics),
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return r.clock },
	}
	require.NoError(t, lease.Ensure(t.Context(), r.pool, lane, jobs.AllRoles()))
	require.NoError(t, r.deps.Store.EnsureInbox(t.Context(), r.pool, lane, r.clock))
	r.restart()
	return r
}

// restart begins with a new process.
func (r *rig) restart() {
	r.t.Helper()
	fence, err := lease.Take(r.t.Context(), r.pool, jobs.RoleHead, jobs.Wake{Lane: lane, Epoch: 1}, fmt.Sprintf("%p", new(int)))
	require.NoError(r.t, err)
	r.fence, r.head = fence, head.New(r.config, r.deps)
}

// Text is Mailbox's.
func (r *rig) Text(_ context.Context, id int64) ([]byte, bool, error) {
	if r.onText != nil {
		if err := r.onText(id); err != nil {
			return nil, false, err
		}
	}
	text, ok := r.mailbox[id]
	return []byte(text), ok, nil
}

// Wake is Waker's.
func (r *rig) Wake(_ context.Context, tx pgx.Tx, roles ...jobs.Role) error {
	for _, role := range roles {
		r.woken[role]++
	}
	if r.onWake != nil {
		return r.onWake(tx)
	}
	return nil
}

// Ring is Waker's.
func (r *rig) Ring(roles ...jobs.Role) {
	for _, role := range roles {
		r.rung[role]++
	}
}

// put takes messages over, as the poller does, and moves the watermark past them; it gives the first one's id.
func (r *rig) put(texts ...string) (first int64) {
	r.t.Helper()
	rows := make([]inbox.Message, len(texts))
	for i, text := range texts {
		rows[i] = inbox.Message{Text: text, Size: len(text)}
	}
	return r.putRows(rows...)
}

func (r *rig) putRows(rows ...inbox.Message) (first int64) {
	r.t.Helper()
	first = r.last + 1
	incoming := make([]store.Incoming, len(rows))
	for i, m := range rows {
		r.last++
		m.ID, m.ReceivedAt = r.last, r.clock
		incoming[i] = r.deps.Store.Incoming(m)
	}
	require.NoError(r.t, pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := r.deps.Store.Enqueue(r.t.Context(), tx, 0, incoming, false, r.clock)
		return err
	}))
	r.exec("UPDATE inbox_cursor SET committed_up_to = $1", r.last)
	return first
}

// forget removes our copy of a text, as raw.retention does; the mailbox keeps it.
func (r *rig) forget(id int64, text string) {
	r.t.Helper()
	r.exec("DELETE FROM msg_raw WHERE msg_id = $1", id)
	r.mailbox[id] = text
}

func (r *rig) exec(query string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), query, args...)
	require.NoError(r.t, err)
}

func (r *rig) step() drain.Next {
	r.t.Helper()
	next, err := r.head.Step(r.t.Context(), r.fence)
	require.NoError(r.t, err)
	return next
}

// finish steps until nothing is left; the clock does the waiting.
func (r *rig) finish() {
	r.t.Helper()
	for {
		next := r.step()
		if !next.Again && next.Wait == 0 {
			return
		}
		r.clock = r.clock.Add(next.Wait)
	}
}

// die steps in a worker that ends while it reads a text: nothing of it runs any more.
func (r *rig) die() {
	r.t.Helper()
	before, dead := r.onText, make(chan struct{})
	r.onText = func(id int64) error {
		if before != nil {
			_ = before(id)
		}
		runtime.Goexit()
		return nil
	}
	go func() {
		defer close(dead)
		_, _ = r.head.Step(r.t.Context(), r.fence)
	}()
	<-dead
	r.onText = before
	r.restart()
}

// outage steps once and wants a failure that is nobody's.
func (r *rig) outage() {
	r.t.Helper()
	_, err := r.head.Step(r.t.Context(), r.fence)
	require.Error(r.t, err)
	require.Equal(r.t, fault.Outage, fault.Of(err), "%v", err)
}

// list gives the one column of a query.
func (r *rig) list(query string, args ...any) []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), query, args...)
	require.NoError(r.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	return out
}

func (r *rig) one(query string, args ...any) string {
	r.t.Helper()
	return strings.Join(r.list(query, args...), "\n")
}

// states tells how every message stands: "2 DEAD EXHAUSTED/INFRA 5x", ascending.
func (r *rig) states() []string {
	r.t.Helper()
	return r.list(`SELECT concat_ws(' ', msg_id, state, error_class || '/' || root_error_class, skip_reason, attempts || 'x') FROM proc_state ORDER BY msg_id`)
}

func (r *rig) requireStates(want ...string) {
	r.t.Helper()
	require.Equal(r.t, want, r.states())
}

// effects are the flights with their versions, and the events of the topic msg: "15 stnd 208 v2".
func (r *rig) effects() []string {
	r.t.Helper()
	return append(r.flights(), r.list(`SELECT concat_ws(' ', 'event', msg_id, flid, 'v' || state_version) FROM msg_event WHERE target = 'KAFKA:msg' ORDER BY event_id`)...)
}

// flights are the flights with their stands and versions: "15 stand 208 v2".
func (r *rig) flights() []string {
	r.t.Helper()
	return r.list(`SELECT concat_ws(' ', flid, 'stand ' || stnd, 'v' || state_version) FROM flight_schd ORDER BY flid`)
}

// everything is all that a step could change, to see that one changed nothing.
func (r *rig) everything() string {
	r.t.Helper()
	return r.one(`SELECT json_agg(t)::text FROM (
		SELECT 'p', to_json(p)::text FROM proc_state p UNION ALL SELECT 'f', to_json(f)::text FROM flight_schd f
		UNION ALL SELECT 'e', to_json(e)::text FROM msg_event e UNION ALL SELECT 'i', to_json(i)::text FROM msg_identity i
		UNION ALL SELECT 's', to_json(s)::text FROM schd_snap_log s ORDER BY 1, 2) t`)
}

// metric gives a metric's value by its name and the values of its labels, in their order.
func (r *rig) metric(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	require.NoError(r.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetValue())
			}
			if f.GetName() == name && strings.Join(got, ",") == strings.Join(labels, ",") {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

// dttm is when message seqn of the tests is made: seconds apart.
func dttm(seqn int) time.Time { return time.Date(2026, 3, 18, 8, 0, seqn, 0, time.UTC) }

// envelope writes a message made at dttm(seqn).
func envelope(seqn int, typ, styp, body string) string {
	return made(dttm(seqn), seqn, typ, styp, body)
}

// made writes a message made at the given local time.
func made(at time.Time, seqn int, typ, styp, body string) string {
	return fmt.Sprintf(`<MSG><META><SNDR>AODB</SNDR><SEQN>%d</SEQN><DTTM>%s</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		seqn, at.Format("20060102150405"), typ, styp, body)
}

// schedule writes a SCHD with n departures from FLID first on; extra is put into each.
func schedule(seqn, first, n int, extra string) string {
	return envelope(seqn, "SCHD", "DNLD", schd(first, n, extra))
}

func schd(first, n int, extra string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<SCHD><RECS>%d</RECS>", n)
	for i := range n {
		fmt.Fprintf(&b, `<FLTR><FLID>%d</FLID><ALCD>3U</ALCD><FLNO>3U%d</FLNO><MVIN>D</MVIN><SODT>18MAR261%03d</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>320</ACFT>%s</FLTR>`,
			first+i, first+i, i%10*100+i/10%60, extra)
	}
	return b.String() + "</SCHD>"
}

// flop writes a message about one flight with the given body.
func flop(seqn, flid int, styp, body string) string {
	return envelope(seqn, "FLOP", styp, fmt.Sprintf("<FLOP><FLID>%d</FLID>%s</FLOP>", flid, body))
}

// stand writes a change of a flight's stand.
func stand(seqn, flid int, stnd string) string {
	return flop(seqn, flid, "STND", "<STND>"+stnd+"</STND>")
}
