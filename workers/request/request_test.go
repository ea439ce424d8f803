package request_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/mailbox/mailboxtest"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	jobsrequest "msgexchange/jobs/request"
	"msgexchange/jobs/sis"
	"msgexchange/workers/drain"
	"msgexchange/workers/request"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

const (
	lane                = "default"
	stands message.Kind = "RQRD-SLST"
)

// rig is the role between a real PostgreSQL and a real MariaDB, with its own clock.
type rig struct {
	*mailboxtest.Desk
	t      *testing.T
	pool   *pgxpool.Pool
	clock  time.Time
	fence  *lease.Fence
	desk   *request.Desk
	role   *request.Requests
	config request.Config
	deps   request.Deps
	wakes  int
}

func setup(t *testing.T) *rig {
	t.Helper()
	r := &rig{Desk: mailboxtest.Open(t, dbtest.Mailbox(t)), t: t, pool: dbtest.New(t), clock: time.Now().Truncate(time.Second)}
	zone := mailboxtest.Shanghai(t)
	now := func() time.Time { return r.clock }
	r.desk = &request.Desk{
		Site: request.Site{Kinds: []message.Kind{jobsrequest.Schedule, stands, "RQRD-ABDG"}, SNDR: "MSGX", Zone: zone},
		Pool: r.pool, Store: store.New(zone), Waker: r, Now: now,
	}
	r.config = request.Config{
		Policy:      jobsrequest.Policy{Schedule: time.Minute, List: 30 * time.Second},
		RoutingRQFD: "ROUTE-RQFD", RoutingRQRD: "ROUTE-RQRD",
	}
	r.deps = request.Deps{Pool: r.pool, Store: r.desk.Store, Mailbox: r.Desk, Log: slog.New(slog.DiscardHandler), Now: now}
	require.NoError(t, lease.Ensure(t.Context(), r.pool, lane, jobs.AllRoles()))
	r.restart()
	return r
}

// restart begins with a new process.
func (r *rig) restart() {
	r.t.Helper()
	fence, err := lease.Take(r.t.Context(), r.pool, jobs.RoleRequest, jobs.Wake{Lane: lane, Epoch: 1}, fmt.Sprintf("%p", new(int)))
	require.NoError(r.t, err)
	r.fence, r.role = fence, request.New(r.config, r.deps)
}

// Wake is Waker's.
func (r *rig) Wake(context.Context, pgx.Tx, ...jobs.Role) error { r.wakes++; return nil }

// Ring is Waker's.
func (r *rig) Ring(...jobs.Role) {}

func (r *rig) ask(kind message.Kind) jobsrequest.Request {
	r.t.Helper()
	var w jobsrequest.Window
	if kind == jobsrequest.Schedule {
		w = jobsrequest.Window{From: r.clock, To: r.clock.Add(time.Hour)}
	}
	q, err := r.desk.Ask(r.t.Context(), kind, w, "olga")
	require.NoError(r.t, err)
	return q
}

func (r *rig) step() drain.Next {
	r.t.Helper()
	next, err := r.role.Step(r.t.Context(), r.fence)
	require.NoError(r.t, err)
	return next
}

// states tells how every request stands: "1 RQRD-SLST SENT", oldest first.
func (r *rig) states() []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), `SELECT concat_ws(' ', id, kind, state, match, reason) FROM req_track ORDER BY id`)
	require.NoError(r.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	return out
}

// sent gives what stands in COUTMSGS, oldest first.
func (r *rig) sent() (texts []string) {
	r.t.Helper()
	rows, err := r.DB().QueryContext(r.t.Context(), "SELECT CONCAT(ROUTINGID, ' ', COUTMSGS_CLOB_MSG) FROM coutmsgs ORDER BY COUTMSGS_ID")
	require.NoError(r.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		require.NoError(r.t, rows.Scan(&s))
		texts = append(texts, s)
	}
	require.NoError(r.t, rows.Err())
	return texts
}

func (r *rig) exec(query string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), query, args...)
	require.NoError(r.t, err)
}

// faulty is a mailbox that fails, or does something first.
type faulty struct {
	request.Mailbox
	clock, send, sentTo func() error
	hangs               bool
	refuses             string // a text with this in it
	ahead               time.Duration
}

func (f *faulty) Clock(ctx context.Context) (time.Time, error) {
	if f.clock != nil {
		if err := f.clock(); err != nil {
			return time.Time{}, err
		}
	}
	if f.hangs {
		<-ctx.Done()
		return time.Time{}, fault.Wrap(fault.Outage, "mailbox", ctx.Err())
	}
	return f.Mailbox.Clock(ctx)
}

func (f *faulty) Taken(ctx context.Context, ids []int64) (map[int64]time.Time, error) {
	if f.hangs {
		<-ctx.Done()
		return nil, fault.Wrap(fault.Outage, "mailbox", ctx.Err())
	}
	return f.Mailbox.Taken(ctx, ids)
}

func (f *faulty) SendRequest(ctx context.Context, text, routing string) (int64, time.Time, error) {
	if f.send != nil {
		if err := f.send(); err != nil {
			return 0, time.Time{}, err
		}
	}
	if f.refuses != "" && strings.Contains(text, f.refuses) {
		return 0, time.Time{}, fault.New(fault.Infra, "send", "this one is refused")
	}
	id, at, err := f.Mailbox.SendRequest(ctx, text, routing)
	at = at.Add(f.ahead)
	if err == nil && f.sentTo != nil {
		err = f.sentTo()
	}
	return id, at, err
}

// A request goes from REGISTERED to SENT to WAITING, and expires at its timeout from when it was sent.
func TestLife(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.Equal(t, drain.Next{}, r.step(), "nothing is open, nothing is to be done")
	r.ask(stands)
	r.ask(jobsrequest.Schedule)
	require.Equal(t, 2, r.wakes)
	require.Equal(t, []string{"1 RQRD-SLST REGISTERED", "2 RQFD-NONE REGISTERED"}, r.states())
	require.Equal(t, drain.Next{Wait: time.Second}, r.step())
	require.Equal(t, []string{"1 RQRD-SLST SENT", "2 RQFD-NONE SENT"}, r.states())
	sent := r.sent()
	require.Len(t, sent, 2)
	require.True(t, strings.HasPrefix(sent[0], `ROUTE-RQRD <?xml version="1.0" encoding="UTF-8"?><MSG `), sent[0])
	require.True(t, strings.HasPrefix(sent[1], `ROUTE-RQFD <?xml`), sent[1])
	asked, err := sis.DecodeRequest([]byte(strings.TrimPrefix(sent[1], "ROUTE-RQFD ")), mailboxtest.Shanghai(t))
	require.NoError(t, err)
	require.Equal(t, "MSGX 2 RQFD-NONE", fmt.Sprint(asked.SNDR, " ", asked.SEQN, " ", asked.Kind))
	require.True(t, asked.DTTM.Equal(r.clock))

	r.Exec("UPDATE coutmsgs SET COUTMSGS_DATE_SENT = '2026-11-30 00:30:00' WHERE COUTMSGS_ID = 2")
	r.step()
	require.Equal(t, []string{"1 RQRD-SLST SENT", "2 RQFD-NONE WAITING"}, r.states())

	r.exec("UPDATE req_track SET registered_at = $1, sent_at = $1::timestamptz + interval '4 s', noted_at = $1::timestamptz + interval '5 s'", r.clock)
	r.clock = r.clock.Add(33 * time.Second)
	require.Equal(t, drain.Next{Wait: time.Second}, r.step())
	require.Equal(t, []string{"1 RQRD-SLST SENT", "2 RQFD-NONE WAITING"}, r.states())
	r.clock = r.clock.Add(time.Second)
	require.Equal(t, drain.Next{Wait: time.Second}, r.step(), "nothing is to be watched; another pod may register one")
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED timeout", "2 RQFD-NONE WAITING"}, r.states())
	r.clock = r.clock.Add(30*time.Second - time.Millisecond)
	require.Equal(t, drain.Next{Wait: time.Millisecond}, r.step(), "a deadline is not overslept")
	r.clock = r.clock.Add(time.Millisecond)
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, drain.Next{}, r.step())
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED timeout", "2 RQFD-NONE EXPIRED timeout"}, r.states())
	require.Len(t, r.sent(), 2)
}

// At most one request of a kind is open; a new one expires the old, also when many ask at once.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.ask(stands)
	r.step()
	r.ask(stands)
	r.ask("RQRD-ABDG")
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED superseded", "2 RQRD-SLST REGISTERED", "3 RQRD-ABDG REGISTERED"}, r.states())
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			_, err := r.desk.Ask(t.Context(), stands, jobsrequest.Window{}, "olga")
			return err
		})
	}
	require.NoError(t, g.Wait())
	open := 0
	for _, s := range r.states() {
		if strings.HasSuffix(s, "REGISTERED") {
			open++
		}
	}
	require.Equal(t, 2, open)
	_, err := r.pool.Exec(t.Context(), "INSERT INTO req_track (kind, registered_at) VALUES ('RQRD-ABDG', now())")
	require.ErrorContains(t, err, "req_track_kind_open_key")

	_, err = r.desk.Ask(t.Context(), "RQRD-REGN", jobsrequest.Window{}, "olga")
	var kind jobsrequest.KindError
	require.ErrorAs(t, err, &kind)
}

// Our counter has six digits and goes from 999999 to 1.
func TestSEQNWraps(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.exec("SELECT setval('req_track_seqn_seq', 999998)")
	for _, want := range []int64{999_999, 1, 2} {
		require.Equal(t, want, r.ask(stands).SEQN)
		r.step()
	}
	for i, seqn := range []string{"999999", "000001", "000002"} {
		require.Contains(t, r.sent()[i], "<SEQN>"+seqn+"</SEQN>")
	}
}

// Whatever breaks between the two transactions around sending, the request stands in the mailbox once.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(r *rig, f *faulty){
		"the answer of the mailbox is lost": func(_ *rig, f *faulty) {
			f.sentTo = func() error { return fault.New(fault.Outage, "send", "connection lost") }
		},
		"PostgreSQL goes away": func(r *rig, f *faulty) {
			f.sentTo = func() error { // between the mailbox's commit and ours
				r.exec("ALTER TABLE req_track ADD CONSTRAINT away CHECK (coutmsgs_id IS NULL)")
				return nil
			}
		},
		"another worker has taken over": func(r *rig, f *faulty) {
			f.sentTo = func() error { r.restart(); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			f := &faulty{Mailbox: r.Desk}
			breaks(r, f)
			stopped, old := request.New(r.config, withMailbox(r.deps, f)), r.fence
			r.ask(stands)
			_, err := stopped.Step(t.Context(), old)
			require.Error(t, err)
			require.Len(t, r.sent(), 1)
			require.Equal(t, []string{"1 RQRD-SLST REGISTERED"}, r.states())

			r.exec("ALTER TABLE req_track DROP CONSTRAINT IF EXISTS away")
			r.restart()
			r.step()
			require.Len(t, r.sent(), 1)
			require.Equal(t, []string{"1 RQRD-SLST SENT"}, r.states())
		})
	}
}

// A worker that was stopped just before it sent, and wakes when another has sent, sends nothing more.
func TestSentOnceByTwo(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.ask(stands)
	f := &faulty{Mailbox: r.Desk}
	f.send = func() error {
		r.restart()
		r.step()
		require.Equal(t, []string{"1 RQRD-SLST SENT"}, r.states())
		return nil
	}
	stopped, old := request.New(r.config, withMailbox(r.deps, f)), r.fence
	_, err := stopped.Step(t.Context(), old)
	require.ErrorIs(t, err, lease.ErrFenced)
	require.Len(t, r.sent(), 1)
}

func withMailbox(d request.Deps, m request.Mailbox) request.Deps {
	d.Mailbox = m
	return d
}

// With the mailbox away a request stays REGISTERED and is sent later, or expires (contract §8.28).
func TestMailboxAway(t *testing.T) {
	t.Parallel()
	r := setup(t)
	away := true
	f := &faulty{Mailbox: r.Desk, clock: func() error {
		if away {
			return fault.New(fault.Outage, "mailbox", "it is away")
		}
		return nil
	}}
	r.role = request.New(r.config, withMailbox(r.deps, f))
	r.ask(stands)
	_, err := r.role.Step(t.Context(), r.fence)
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, []string{"1 RQRD-SLST REGISTERED"}, r.states())
	r.clock = r.clock.Add(29 * time.Second)
	away = false
	r.step()
	require.Equal(t, []string{"1 RQRD-SLST SENT"}, r.states())

	away = true
	r.ask("RQRD-ABDG")
	r.clock = r.clock.Add(30 * time.Second)
	_, _ = r.role.Step(t.Context(), r.fence)
	require.Equal(t, "2 RQRD-ABDG EXPIRED timeout", r.states()[1])
}

// Requests expire in time while the mailbox hangs instead of being away: each of its calls is bounded.
func TestMailboxHangs(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.ask(stands)
	r.step()
	r.ask("RQRD-ABDG")
	r.config.MailboxTimeout = time.Millisecond
	r.role = request.New(r.config, withMailbox(r.deps, &faulty{Mailbox: r.Desk, hangs: true}))
	_, err := r.role.Step(t.Context(), r.fence)
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, []string{"1 RQRD-SLST SENT", "2 RQRD-ABDG REGISTERED"}, r.states())
	r.clock = r.clock.Add(31 * time.Second)
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED timeout", "2 RQRD-ABDG EXPIRED timeout"}, r.states())
}

// A request that the mailbox does not take keeps no other back.
func TestOneRefused(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.role = request.New(r.config, withMailbox(r.deps, &faulty{Mailbox: r.Desk, refuses: "<RTYP>SLST"}))
	r.ask(stands)
	r.ask("RQRD-ABDG")
	_, err := r.role.Step(t.Context(), r.fence)
	require.ErrorContains(t, err, "this one is refused")
	require.Equal(t, []string{"1 RQRD-SLST REGISTERED", "2 RQRD-ABDG SENT"}, r.states())
}

// The clocks of the mailbox and of the pods need not agree: one that is ahead prolongs no request's life.
func TestMailboxClockAhead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.role = request.New(r.config, withMailbox(r.deps, &faulty{Mailbox: r.Desk, ahead: time.Hour}))
	r.ask(stands)
	r.clock = r.clock.Add(10 * time.Second)
	r.step()
	r.clock = r.clock.Add(30*time.Second - time.Millisecond)
	require.Equal(t, drain.Next{Wait: time.Millisecond}, r.step())
	require.Equal(t, []string{"1 RQRD-SLST SENT"}, r.states())
	r.clock = r.clock.Add(time.Millisecond)
	r.step()
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED timeout"}, r.states())
}

// Who waits for a request whose answer is quicker than our note that it was sent, still gets its id.
func TestSent_answeredBefore(t *testing.T) {
	t.Parallel()
	r := setup(t)
	q := r.ask(stands)
	waited := make(chan string, 1)
	f := &faulty{Mailbox: r.Desk, sentTo: func() error {
		r.exec("UPDATE req_track SET state = 'DONE', done_at = now(), match = 'inferred'") // as the head does
		go func() {
			id, ok, err := r.desk.Sent(t.Context(), q.ID, time.Minute)
			waited <- fmt.Sprint(id, ok, err)
		}()
		select {
		case got := <-waited:
			return errors.New("it did not wait: " + got)
		case <-time.After(100 * time.Millisecond):
			return nil
		}
	}}
	r.role = request.New(r.config, withMailbox(r.deps, f))
	r.step()
	require.Equal(t, "1 true <nil>", <-waited)
	require.Equal(t, []string{"1 RQRD-SLST DONE inferred"}, r.states())
}

// Who waits for a request gets its id in the mailbox, or it expires.
func TestSent(t *testing.T) {
	t.Parallel()
	r := setup(t)
	q := r.ask(stands)
	var g errgroup.Group
	g.Go(func() error { _, err := r.role.Step(t.Context(), r.fence); return err })
	id, ok, err := r.desk.Sent(t.Context(), q.ID, time.Minute)
	require.NoError(t, errors.Join(err, g.Wait()))
	require.True(t, ok)
	require.Equal(t, int64(1), id)

	q = r.ask("RQRD-ABDG")
	_, ok, err = r.desk.Sent(t.Context(), q.ID, time.Nanosecond)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, "2 RQRD-ABDG EXPIRED mailbox-unavailable", r.states()[1])
	r.step()
	require.Len(t, r.sent(), 1, "what has expired is not sent")
}

// A shadow sends nothing: what stands there from before expires.
func TestShadow(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.config.Shadow = true
	r.restart()
	r.ask(stands)
	require.Equal(t, drain.Next{Wait: time.Second}, r.step())
	r.clock = r.clock.Add(time.Minute)
	r.step()
	require.Equal(t, []string{"1 RQRD-SLST EXPIRED timeout"}, r.states())
	require.Empty(t, r.sent())
}

func TestPending(t *testing.T) {
	t.Parallel()
	r := setup(t)
	pending := func() bool {
		p, err := r.role.Pending(t.Context(), r.pool)
		require.NoError(t, err)
		return p
	}
	require.False(t, pending())
	r.ask(stands)
	require.True(t, pending())
	require.NoError(t, db.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
		return r.desk.Store.SupersedeRequest(t.Context(), tx, stands, r.clock)
	}))
	require.False(t, pending())
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.ask(stands)
	r.ask(stands)
	reg := prometheus.NewRegistry()
	request.NewMetrics(reg, r.pool, r.desk.Store, r.desk.Kinds())
	gathered := func() (out []string) {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				out = append(out, fmt.Sprint(f.GetName(), m.GetLabel(), " ", m.GetCounter().GetValue()+m.GetGauge().GetValue()))
			}
		}
		return out
	}
	require.Equal(t, []string{
		"msgx_requests_expired_total[] 1",
		`msgx_requests_open[name:"kind" value:"RQFD-NONE"] 0`,
		`msgx_requests_open[name:"kind" value:"RQRD-ABDG"] 0`,
		`msgx_requests_open[name:"kind" value:"RQRD-SLST"] 1`,
	}, normal(gathered()))
	r.pool.Close()
	require.Empty(t, gathered(), "what cannot be read is left out")
}

// normal takes out the second blank that protobuf's texts have at random.
func normal(all []string) []string {
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "  ", " ")
	}
	return all
}
