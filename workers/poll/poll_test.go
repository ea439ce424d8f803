package poll

import (
	"bytes"
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

	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/mailbox/mailboxtest"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/inbox"
	"msgexchange/workers/drain"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

const (
	lane  = "default"
	delay = 5 * time.Minute
)

// rig is a poller between a real PostgreSQL and a real MariaDB, with its own clock.
type rig struct {
	*mailboxtest.Desk
	t     *testing.T
	pool  *pgxpool.Pool
	dsn   string
	clock time.Time
	log   *bytes.Buffer
	woken []jobs.Role
	fence *lease.Fence
	deps  Deps
	poll  *Poll
}

func setup(t *testing.T) *rig {
	t.Helper()
	dsn := dbtest.Mailbox(t)
	r := &rig{
		Desk: mailboxtest.Open(t, dsn), t: t, pool: dbtest.New(t), dsn: dsn,
		clock: time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC), log: &bytes.Buffer{},
	}
	require.NoError(t, lease.Ensure(t.Context(), r.pool, lane, jobs.AllRoles()))
	fence, err := lease.Take(t.Context(), r.pool, jobs.RolePoll, jobs.Wake{Lane: lane, Epoch: 1}, "test")
	require.NoError(t, err)
	r.fence = fence
	s := store.New(time.UTC)
	r.deps = Deps{
		Pool: r.pool, Store: s, Mailbox: r.Desk, Server: r.Desk, Waker: r,
		Metrics: NewMetrics(prometheus.NewRegistry(), r.pool, s, lane),
		Log:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:     func() time.Time { return r.clock },
	}
	r.restart(func(*Config) {})
	return r
}

// restart begins with a new process, as far as the poller can tell.
func (r *rig) restart(change func(*Config)) {
	c := Config{
		Lane: lane, Pace: inbox.Pace{Busy: 20 * time.Millisecond, Idle: time.Second}, Batch: 50,
		MaxCommitDelay: inbox.CommitDelay(delay), Late: inbox.Apply, LateDetectPeriod: time.Minute,
	}
	change(&c)
	r.poll = New(c, r.deps)
}

// Wake is Waker's.
func (r *rig) Wake(_ context.Context, _ pgx.Tx, roles ...jobs.Role) error {
	r.woken = append(r.woken, roles...)
	return nil
}

// Ring is Waker's.
func (r *rig) Ring(...jobs.Role) {}

func (r *rig) step() drain.Next {
	r.t.Helper()
	next, err := r.poll.Step(r.t.Context(), r.fence)
	require.NoError(r.t, err)
	return next
}

// drainAll steps until a round finds nothing more to take at once.
func (r *rig) drainAll() {
	r.t.Helper()
	next := r.step()
	for next.Again {
		next = r.step()
	}
}

func (r *rig) at() store.Inbox {
	r.t.Helper()
	in, _, err := r.deps.Store.Inbox(r.t.Context(), r.pool, lane)
	require.NoError(r.t, err)
	return in
}

// queued lists what has been taken over: "id" or "id late", ascending.
func (r *rig) queued() []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), "SELECT msg_id || CASE WHEN late THEN ' late' ELSE '' END FROM proc_state WHERE state = 'PENDING' ORDER BY msg_id")
	require.NoError(r.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	return out
}

func (r *rig) one(query string, args ...any) (out string) {
	r.t.Helper()
	require.NoError(r.t, r.pool.QueryRow(r.t.Context(), query, args...).Scan(&out))
	return out
}

func (r *rig) putAll(ids ...int64) {
	r.t.Helper()
	for _, id := range ids {
		r.Put(id, fmt.Sprintf("<MSG>%d</MSG>", id), "2026-11-30 08:59:00")
	}
}

func TestTakesOver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.Equal(t, drain.Next{Wait: time.Second}, r.step(), "an empty mailbox")
	r.Put(1, "<MSG>\u4e00</MSG>", "2026-11-30 00:30:00")
	r.Put(2, "<MSG/>", "")
	require.Equal(t, drain.Next{Wait: 20 * time.Millisecond}, r.step())
	require.Equal(t, []string{"1", "2"}, r.queued())
	require.Equal(t, int64(2), r.at().Cursor.W)
	require.Equal(t, []jobs.Role{jobs.RoleHead}, r.woken)
	require.Equal(t, "2026-11-29 16:30:00", r.one("SELECT (received_at AT TIME ZONE 'UTC')::text FROM proc_state WHERE msg_id = 1"))
	require.Equal(t, "none", r.one("SELECT coalesce(received_at::text, 'none') FROM proc_state WHERE msg_id = 2"))

	raw, err := r.deps.Store.RawTexts(t.Context(), r.pool, positions(1, 2, 3))
	require.NoError(t, err)
	require.Len(t, raw, 2)
	require.Equal(t, "<MSG>\u4e00</MSG>", string(raw[positions(1)[0]].Text))

	require.Equal(t, drain.Next{Wait: 40 * time.Millisecond}, r.step(), "slower while nothing comes")
	require.Len(t, r.woken, 1, "no news, no wake-up")
}

// TestBatches: a backlog goes through in full rounds without pauses.
func TestBatches(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for id := int64(1); id <= 120; id++ {
		r.putAll(id)
	}
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, int64(50), r.at().Cursor.W)
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, drain.Next{Wait: 20 * time.Millisecond}, r.step())
	require.Len(t, r.queued(), 120)
}

// TestK08_SameRangeTwice: a round whose commit went unheard, or one beside another, changes nothing more (K08).
func TestK08_SameRangeTwice(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.step()
	r.putAll(1, 2)
	before := r.at()
	look, err := r.poll.read(t.Context(), before.Cursor)
	require.NoError(t, err)
	require.NoError(t, r.poll.commit(t.Context(), r.fence, before, look))
	require.ErrorIs(t, r.poll.commit(t.Context(), r.fence, before, look), errMoved)
	require.Equal(t, []string{"1", "2"}, r.queued())

	_, err = r.pool.Exec(t.Context(), "UPDATE inbox_cursor SET committed_up_to = 0")
	require.NoError(t, err)
	r.step()
	require.Equal(t, []string{"1", "2"}, r.queued(), "known rows are left alone")
	require.Equal(t, int64(2), r.at().Cursor.W)
}

// TestFenced: a poller that was overtaken writes nothing (K04).
func TestFenced(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.step()
	r.putAll(1)
	_, err := lease.Take(t.Context(), r.pool, jobs.RolePoll, jobs.Wake{Lane: lane, Epoch: 1}, "another")
	require.NoError(t, err)
	_, err = r.poll.Step(t.Context(), r.fence)
	require.ErrorIs(t, err, lease.ErrFenced)
	require.Empty(t, r.queued())
}

// TestK11_LateCommit: the lower id commits late, first within the delay, then after it.
func TestK11_LateCommit(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.step()
	owner := mailboxtest.Owner(t, r.dsn)
	begin := func() (commit func()) {
		tx, err := owner.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) VALUES ('<MSG/>', '2026-11-30 08:59:00')")
		require.NoError(t, err)
		return func() { require.NoError(t, tx.Commit()) }
	}
	begin()()          // 1
	commit2 := begin() // 2
	begin()()          // 3
	r.drainAll()
	require.Equal(t, []string{"1"}, r.queued(), "3 waits for 2")
	r.clock = r.clock.Add(delay - time.Second)
	commit2()
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3"}, r.queued(), "in order")
	require.Empty(t, r.at().Cursor.Holes)

	commit4 := begin() // 4
	begin()()          // 5
	r.step()
	r.clock = r.clock.Add(delay)
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3", "5"}, r.queued(), "4 is given up")
	require.Contains(t, r.log.String(), "hole passed")
	commit4()
	r.drainAll()
	require.NotContains(t, r.log.String(), "late arrival", "not yet time to look back")
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3", "4 late", "5"}, r.queued())
	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Equal(t, 1, strings.Count(r.log.String(), "late arrival"), "told once")
	require.Equal(t, int64(5), r.at().Cursor.W)
}

func TestLateIsOnlyReported(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.restart(func(c *Config) { c.Late = inbox.Report })
	r.putAll(1, 5)
	r.step()
	r.clock = r.clock.Add(delay)
	r.drainAll()
	r.Put(3, "<MSG/>", "2026-11-30 09:06:00") // received after everything we took, as late rows are
	for range 3 {
		r.clock = r.clock.Add(time.Minute)
		r.drainAll()
	}
	require.Equal(t, []string{"1", "5"}, r.queued())
	require.Equal(t, 1, strings.Count(r.log.String(), "late arrival"))
	require.Empty(t, r.at().Stopped, "not a sign of ids running backwards")
}

// TestK12_RollbackAcrossRestart: a hole of a rolled-back insert ages from its first sight, whoever polls, and nothing
// passes it a second early; old rows beside it lend it no age.
func TestK12_RollbackAcrossRestart(t *testing.T) {
	t.Parallel()
	r := setup(t)
	owner := mailboxtest.Owner(t, r.dsn)
	tx, err := owner.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG) VALUES ('<MSG/>')")
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	r.Put(2, "<MSG/>", "2026-01-01 00:00:00") // months old
	r.drainAll()
	require.Empty(t, r.queued())

	r.clock = r.clock.Add(delay / 2)
	r.restart(func(*Config) {})
	r.putAll(4) // a second hole, half the delay younger
	r.drainAll()
	r.clock = r.clock.Add(delay/2 - time.Second)
	next := r.step()
	require.Empty(t, r.queued())
	require.LessOrEqual(t, next.Wait, time.Second, "the release is not overslept")
	r.clock = r.clock.Add(time.Second)
	r.drainAll()
	require.Equal(t, []string{"2"}, r.queued(), "the younger hole still holds")
	r.clock = r.clock.Add(delay / 2)
	r.drainAll()
	require.Equal(t, []string{"2", "4"}, r.queued())
}

// TestK13_Burst: 300 rows with two ids missing before each, in a mailbox whose step we were not told: all of the holes
// are seen at once and pass within one window.
func TestK13_Burst(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for i := range int64(300) {
		r.putAll(3*i + 3)
	}
	r.drainAll()
	require.Empty(t, r.queued())
	require.Len(t, r.at().Cursor.Holes, 300, "though a batch is 50")
	r.clock = r.clock.Add(delay)
	r.drainAll()
	require.Len(t, r.queued(), 300)
	require.Equal(t, int64(900), r.at().Cursor.W)
}

// TestHoleProbe: a hole passes once the server shows that nobody can fill it, and not while somebody can.
func TestHoleProbe(t *testing.T) {
	t.Parallel()
	r := setup(t)
	probe := &probed{}
	r.deps.Prober = probe
	r.restart(func(*Config) {})
	r.putAll(1, 3)
	r.drainAll()
	require.Zero(t, probe.asked, "nothing to ask for yet")
	r.clock = r.clock.Add(10 * time.Second)
	probe.age, probe.known = 11*time.Second, true // older than the hole
	r.drainAll()
	require.Equal(t, []string{"1"}, r.queued())
	probe.age, probe.known = 0, false
	r.drainAll()
	require.Equal(t, []string{"1"}, r.queued(), "in doubt: wait")
	probe.age, probe.known = 2*time.Second, true
	r.drainAll()
	require.Equal(t, []string{"1", "3"}, r.queued())
	asked := probe.asked
	r.drainAll()
	require.Equal(t, asked, probe.asked, "no hole, no question")
}

type probed struct {
	age   time.Duration
	known bool
	asked int
}

func (p *probed) OldestTransaction(context.Context) (time.Duration, bool, error) {
	p.asked++
	return p.age, p.known, nil
}

// steps is a server with an id step.
type steps struct{ *mailboxtest.Desk }

func (s steps) Facts(ctx context.Context) (inbox.Extent, int64, error) {
	e, _, err := s.Desk.Facts(ctx)
	return e, 3, err
}

func TestK13_Step(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.deps.Server = steps{r.Desk}
	r.restart(func(*Config) {})
	for i := range int64(300) {
		r.putAll(3*i + 2)
	}
	r.drainAll()
	require.Len(t, r.queued(), 300, "no hole, no wait")
	require.Equal(t, "3", r.one("SELECT id_step::text FROM inbox_cursor"))
}

// outage is a mailbox that is away.
type outage struct{ Mailbox }

func (outage) After(context.Context, int64, int) ([]inbox.Row, error) {
	return nil, fault.New(fault.Outage, "mailbox", "away")
}

func TestOutageChangesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 3)
	r.step()
	before := r.at()
	r.clock = r.clock.Add(2 * delay)
	r.poll.mailbox = outage{r.Desk}
	_, err := r.poll.Step(t.Context(), r.fence)
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, before, r.at(), "not even an old hole passes unseen")
}

func TestOversizeAndBadDates(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Put(1, strings.Repeat("x", 10<<20+1), "2026-11-30 09:00:00")
	r.Exec("SET STATEMENT sql_mode = '' FOR INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) VALUES (2, '<MSG/>', '0000-00-00 00:00:00')")
	r.putAll(3)
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3"}, r.queued())
	raw, err := r.deps.Store.RawTexts(t.Context(), r.pool, positions(1, 2))
	require.NoError(t, err)
	require.Equal(t, store.Raw{Oversize: true, SizeBytes: 10<<20 + 1}, raw[positions(1)[0]])
	require.Equal(t, "<MSG/>", string(raw[positions(2)[0]].Text))
	require.Equal(t, "none", r.one("SELECT coalesce(received_at::text, 'none') FROM proc_state WHERE msg_id = 2"))
	require.Contains(t, r.log.String(), "received dates unreadable")
}

func TestRegisterAheadOfThePoller(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1)
	r.drainAll()
	reg := Registrar{Lane: lane, Store: r.deps.Store, Waker: r, Now: r.deps.Now}
	register := func(id int64, text string) {
		require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
			return reg.Register(t.Context(), tx, id, text, r.clock)
		}))
	}
	r.Put(3, "<MSG>three</MSG>", "2026-11-30 09:00:00")
	register(3, "<MSG>three</MSG>")
	register(3, "<MSG>three</MSG>")
	require.Equal(t, []string{"1", "3"}, r.queued())
	require.Equal(t, int64(1), r.at().Cursor.W, "the watermark is the poller's alone")
	register(1, "<MSG>other</MSG>")

	r.putAll(2)
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3"}, r.queued())
	raw, err := r.deps.Store.RawTexts(t.Context(), r.pool, positions(1, 3))
	require.NoError(t, err)
	require.Equal(t, "<MSG>1</MSG>", string(raw[positions(1)[0]].Text))
	require.Equal(t, "<MSG>three</MSG>", string(raw[positions(3)[0]].Text))
}

// vanishing deletes a row between the look and the reading of its text.
type vanishing struct {
	*mailboxtest.Desk
	id int64
}

func (v vanishing) After(ctx context.Context, after int64, limit int) ([]inbox.Row, error) {
	rows, err := v.Desk.After(ctx, after, limit)
	v.Exec("DELETE FROM cminmsgs WHERE CMINMSGS_ID = ?", v.id)
	return rows, err
}

func TestRowDeletedWhileReading(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2, 3)
	r.poll.mailbox = vanishing{r.Desk, 2}
	r.drainAll()
	require.Equal(t, []string{"1", "2", "3"}, r.queued(), "what was seen is accounted for")
	require.Equal(t, "1,3", r.one("SELECT string_agg(msg_id::text, ',' ORDER BY msg_id) FROM msg_raw"))
}

func TestErrMovedIsNoError(t *testing.T) {
	t.Parallel()
	require.NoError(t, ignoreMoved(fmt.Errorf("round: %w", errMoved)))
	other := errors.New("other")
	require.Equal(t, other, ignoreMoved(other))
}
