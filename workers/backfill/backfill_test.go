package backfill

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/mailbox/mailboxtest"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/fault"
	"msgexchange/workers/drain"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

const lane = "default"

// rig is a backfill worker between a real PostgreSQL and a real MariaDB, with its own clock.
type rig struct {
	*mailboxtest.Desk
	dsn   string
	t     *testing.T
	pool  *pgxpool.Pool
	clock time.Time
	log   *bytes.Buffer
	fence *lease.Fence
	work  *Backfill
}

func setup(t *testing.T) *rig {
	t.Helper()
	dsn := dbtest.Mailbox(t)
	r := &rig{
		Desk: mailboxtest.Open(t, dsn), dsn: dsn, t: t, pool: dbtest.New(t),
		clock: time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC), log: &bytes.Buffer{},
	}
	require.NoError(t, lease.Ensure(t.Context(), r.pool, lane, jobs.AllRoles()))
	fence, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "test")
	require.NoError(t, err)
	r.fence = fence
	r.work = New(Config{
		Batch:  500,
		Policy: backfill.Policy{MaxAttempts: 3, Overdue: 720 * time.Hour},
		Values: backfill.Values{Processed: "PROCESSED", ByOutcome: map[backfill.Outcome]string{backfill.Dead: "DEAD"}},
	}, Deps{
		Pool: r.pool, Store: store.New(time.UTC), Mailbox: r.Desk, Now: func() time.Time { return r.clock },
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	r.work.gather = 0
	return r
}

// owe makes a finished message whose mark is owed, and its mailbox row.
func (r *rig) owe(id int64, state string) {
	r.t.Helper()
	r.Put(id, "<MSG/>", "")
	r.exec(`INSERT INTO proc_state (msg_id, state, error_class, created_at, updated_at, finished_at, backfill_next_at, sndr, type, styp, seqn, dttm)
		VALUES ($1, $2, CASE $2 WHEN 'DEAD' THEN 'INFRA' END, $3, $3, $3, $3, 'AODB', 'FLOP', 'PSDT', $1, $3)`, id, state, r.clock)
}

func (r *rig) exec(query string, args ...any) int64 {
	r.t.Helper()
	tag, err := r.pool.Exec(r.t.Context(), query, args...)
	require.NoError(r.t, err)
	return tag.RowsAffected()
}

// debt tells a message's mark in short.
func (r *rig) debt(id int64) (out string) {
	r.t.Helper()
	require.NoError(r.t, r.pool.QueryRow(r.t.Context(), `SELECT CASE
		WHEN backfill_at IS NOT NULL THEN 'paid' || CASE WHEN backfill_next_at IS NULL THEN '' ELSE ' and owed' END
		WHEN backfill_abandoned_at IS NOT NULL THEN 'given up: ' || backfill_abandoned_reason
		WHEN backfill_next_at IS NULL THEN 'not owed'
		ELSE 'owed in ' || extract(epoch FROM backfill_next_at - $2)::int || 's, tries ' || backfill_attempts END
		FROM proc_state WHERE msg_id = $1`, id, r.clock).Scan(&out))
	return out
}

func (r *rig) step() drain.Next {
	r.t.Helper()
	next, err := r.work.Step(r.t.Context(), r.fence)
	require.NoError(r.t, err)
	return next
}

// putBack is what a replay does: it leaves messages alone whose mark is under way.
func (r *rig) putBack(id int64) bool {
	r.t.Helper()
	return r.exec(`UPDATE proc_state SET state = 'PENDING', finished_at = NULL, error_class = NULL, backfill_next_at = NULL, backfill_attempts = 0,
		backfill_error = NULL, replay_count = replay_count + 1
		WHERE msg_id = $1 AND state = 'DEAD' AND backfill_at IS NULL
		  AND NOT coalesce(backfill_attempts > 0 AND backfill_error IS NULL AND backfill_next_at > $2, false)`, id, r.clock) == 1
}

// asked is a mailbox that does something first.
type asked struct {
	Mailbox
	first func() error
}

func (a asked) Mark(ctx context.Context, marks []backfill.Mark, at time.Time) ([]backfill.Answer, error) {
	if err := a.first(); err != nil {
		return nil, err
	}
	return a.Mailbox.Mark(ctx, marks, at)
}

// refusing is a mailbox that refuses some rows.
type refusing struct {
	Mailbox
	ids map[int64]bool
}

func (m refusing) Mark(ctx context.Context, marks []backfill.Mark, at time.Time) ([]backfill.Answer, error) {
	answers, err := m.Mailbox.Mark(ctx, nil, at)
	for _, k := range marks {
		if m.ids[k.ID] {
			answers = append(answers, backfill.Answer{ID: k.ID, Result: backfill.Transient, Err: fault.New(fault.Infra, "mark", "row is locked")})
			continue
		}
		one, oneErr := m.Mailbox.Mark(ctx, []backfill.Mark{k}, at)
		if oneErr != nil {
			return nil, oneErr
		}
		answers = append(answers, one...)
	}
	return answers, err
}

func TestPays(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.Equal(t, drain.Next{}, r.step(), "nothing owed")
	r.owe(1, "SUCCEEDED")
	r.owe(2, "DEAD")
	r.owe(3, "SKIPPED")
	r.owe(4, "SUCCEEDED")
	r.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = '2026-11-01 00:00:00' WHERE CMINMSGS_ID = 3")
	r.Exec("DELETE FROM cminmsgs WHERE CMINMSGS_ID = 4")
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, []string{"paid", "paid", "paid", "given up: row-missing"}, []string{r.debt(1), r.debt(2), r.debt(3), r.debt(4)})
	require.Equal(t, "PROCESSED", r.Column(1, "CMINMSGS_STATUS"))
	require.Equal(t, "2026-11-30 09:00:00", r.Column(1, "CMINMSGS_DATE_PROCESSED"), "in the mailbox's zone")
	require.Equal(t, "PSDT", r.Column(1, "CMINMSGS_SUBSYSTEM_SUBTYPE"))
	require.Equal(t, "DEAD", r.Column(2, "CMINMSGS_STATUS"))
	require.Equal(t, "2026-11-01 00:00:00", r.Column(3, "CMINMSGS_DATE_PROCESSED"), "never overwritten")
	require.Contains(t, r.log.String(), "level=ERROR msg=\"mark given up\" msg_id=4 reason=row-missing")

	require.Equal(t, drain.Next{}, r.step())
	pending, err := r.work.Pending(t.Context(), r.pool)
	require.NoError(t, err)
	require.False(t, pending, "what was given up is no work")
}

func TestUnfinishedIsNeverMarked(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for id, state := range map[int64]string{1: "PENDING", 2: "FAILED"} {
		r.Put(id, "<MSG/>", "")
		r.exec("INSERT INTO proc_state (msg_id, state, created_at, updated_at) VALUES ($1, $2, $3, $3)", id, state, r.clock)
	}
	require.Equal(t, drain.Next{}, r.step())
	require.Equal(t, "NULL", r.Column(1, "CMINMSGS_DATE_PROCESSED"))
	require.Equal(t, "NULL", r.Column(2, "CMINMSGS_DATE_PROCESSED"))
}

// TestTransient: pauses, then giving up; an operator's resume makes it due again.
func TestTransient(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	r.work.mailbox = refusing{r.Desk, map[int64]bool{1: true}}
	r.step()
	require.Equal(t, "owed in 30s, tries 1", r.debt(1))
	require.Equal(t, drain.Next{Wait: 15 * time.Second}, r.step(), "wakes in between: an operator may have made it due")
	r.clock = r.clock.Add(30 * time.Second)
	r.step()
	require.Equal(t, "owed in 60s, tries 2", r.debt(1))
	r.clock = r.clock.Add(time.Minute)
	r.step()
	require.Equal(t, "given up: attempts-spent", r.debt(1))
	require.Equal(t, "NULL", r.Column(1, "CMINMSGS_DATE_PROCESSED"))

	r.work.mailbox = r.Desk
	r.exec("UPDATE proc_state SET backfill_abandoned_at = NULL, backfill_abandoned_reason = NULL, backfill_error = NULL, backfill_attempts = 0, backfill_next_at = $1", r.clock)
	r.step()
	require.Equal(t, "paid", r.debt(1))
}

// TestK15_OutageSpendsNothing: while the mailbox is away no attempt is spent, and every mark lands afterwards.
func TestK15_OutageSpendsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	r.work.mailbox = asked{r.Desk, func() error { return fault.New(fault.Outage, "mailbox", "away") }}
	for range 5 {
		_, err := r.work.Step(t.Context(), r.fence)
		require.Equal(t, fault.Outage, fault.Of(err))
		require.Equal(t, "owed in 0s, tries 0", r.debt(1))
	}
	require.Equal(t, int64(1), r.exec("SELECT 1 FROM proc_state WHERE backfill_error IS NULL"), "nothing is held against it")
	r.work.mailbox = r.Desk
	r.step()
	require.Equal(t, "paid", r.debt(1))
}

// While the mailbox is away no step looks as if it had been there: each is an outage, or says that it did not ask again.
func TestOutageIsTold(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.work.gather = gather
	r.owe(1, "SUCCEEDED")
	r.work.mailbox = asked{r.Desk, func() error { return fault.New(fault.Outage, "mark", "away") }}
	for range 20 {
		next, err := r.work.Step(t.Context(), r.fence)
		require.True(t, fault.Of(err) == fault.Outage || next.Away, "%+v %v", next, err)
		r.clock = r.clock.Add(50 * time.Millisecond)
	}
	r.work.mailbox = r.Desk
	r.clock = r.clock.Add(time.Second)
	require.False(t, r.step().Away)
	require.Equal(t, "paid", r.debt(1))
}

// TestCrashAfterMark: the mark is in the mailbox, the settling never happened. The claim runs out, the next try finds the
// mark.
func TestCrashAfterMark(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	debts, err := r.work.claim(t.Context(), r.fence)
	require.NoError(t, err)
	_, err = r.work.mark(t.Context(), debts)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("owed in %ds, tries 1", int(claim.Seconds())), r.debt(1))
	require.Equal(t, drain.Next{Wait: 15 * time.Second}, r.step(), "claimed: nobody else takes it")
	r.clock = r.clock.Add(claim)
	r.step()
	require.Equal(t, "paid", r.debt(1))
	require.Contains(t, r.log.String(), "already=1")
}

// TestReplayAndMarkExclude: a message whose mark is under way cannot be put back; one that was put back is not marked.
func TestReplayAndMarkExclude(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "DEAD")
	r.owe(2, "DEAD")
	require.True(t, r.putBack(2), "first the replay")
	tried := false
	r.work.mailbox = asked{r.Desk, func() error {
		tried = r.putBack(1)
		return nil
	}}
	r.step()
	require.False(t, tried, "then the mark")
	require.Equal(t, "paid", r.debt(1))
	require.Equal(t, "not owed", r.debt(2))
	require.Equal(t, "NULL", r.Column(2, "CMINMSGS_DATE_PROCESSED"))

	// While a mark waits after a failure its message may be put back.
	r.owe(3, "DEAD")
	r.work.mailbox = refusing{r.Desk, map[int64]bool{3: true}}
	r.step()
	require.Equal(t, "owed in 30s, tries 1", r.debt(3))
	require.True(t, r.putBack(3))
}

// TestStaleClaim: a worker that slept through its claim settles nothing of a message put back and finished again.
func TestStaleClaim(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "DEAD")
	debts, err := r.work.claim(t.Context(), r.fence)
	require.NoError(t, err)
	r.clock = r.clock.Add(claim)
	require.True(t, r.putBack(1))
	r.exec("UPDATE proc_state SET state = 'SUCCEEDED', finished_at = $1, backfill_next_at = $1", r.clock)
	require.NoError(t, r.work.settle(t.Context(), r.fence, debts, []backfill.Answer{{ID: 1, Result: backfill.Missing}}))
	require.Equal(t, "owed in 0s, tries 0", r.debt(1))
}

// TestFairRotation: rows that always fail do not keep the others from their turn.
func TestFairRotation(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.work.config.Batch, r.work.config.Policy.MaxAttempts = 10, 1000
	bad := map[int64]bool{}
	for id := int64(1); id <= 30; id++ {
		r.owe(id, "SUCCEEDED")
		bad[id] = id <= 20
	}
	r.work.mailbox = refusing{r.Desk, bad}
	for range 3 {
		require.True(t, r.step().Again)
	}
	require.Equal(t, "paid", r.debt(30))
	r.clock = r.clock.Add(time.Hour)
	r.owe(31, "SUCCEEDED")
	r.step()
	require.Equal(t, "paid", r.debt(31), "the newest goes before those that failed")
}

// TestGathers: marks that come one by one are written together, full batches at once.
func TestGathers(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.work.gather, r.work.config.Batch = gather, 2
	r.owe(1, "SUCCEEDED")
	require.True(t, r.step().Again)
	r.owe(2, "SUCCEEDED")
	require.Equal(t, drain.Next{Wait: gather}, r.step())
	for id := int64(3); id <= 6; id++ {
		r.owe(id, "SUCCEEDED")
	}
	r.clock = r.clock.Add(gather)
	require.True(t, r.step().Again)
	require.True(t, r.step().Again)
	require.Equal(t, "paid", r.debt(5))
	require.True(t, r.step().Again)
	r.clock = r.clock.Add(gather)
	require.Equal(t, drain.Next{}, r.step())
	r.owe(7, "SUCCEEDED")
	require.Equal(t, drain.Next{}, r.step(), "nothing is asked again so soon")
	pending, err := r.work.Pending(t.Context(), r.pool)
	require.NoError(t, err)
	require.True(t, pending, "but the drain does not close over it")
	r.clock = r.clock.Add(gather)
	require.True(t, r.step().Again)
	require.Equal(t, "paid", r.debt(7))
}

// Marks stand back while many messages wait, but not for longer than patience, and at once no more when the crowd is gone.
func TestStandsBack(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.work.gather = gather
	wait := func(n int) {
		r.exec(`INSERT INTO proc_state (msg_id, created_at, updated_at) SELECT g, $1, $1 FROM generate_series(1000, 999 + $2::bigint) g`, r.clock, n)
	}
	r.owe(1, "SUCCEEDED")
	wait(crowd)
	for range patience / gather {
		require.Equal(t, drain.Next{Wait: gather}, r.step())
		r.clock = r.clock.Add(gather)
	}
	require.Equal(t, "owed in -10s, tries 0", r.debt(1))
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, "paid", r.debt(1), "patience is over, though the crowd is still there")

	r.exec("DELETE FROM proc_state WHERE msg_id >= 1000")
	r.owe(2, "SUCCEEDED")
	wait(crowd - 1)
	r.clock = r.clock.Add(gather)
	require.Equal(t, drain.Next{Again: true}, r.step())
	require.Equal(t, "paid", r.debt(2), "this is no crowd")
	r.exec("UPDATE proc_state SET msg_id = msg_id + 1000 WHERE msg_id >= 1000")
	wait(1)
	r.owe(3, "SUCCEEDED")
	r.clock = r.clock.Add(gather)
	require.Equal(t, drain.Next{Wait: gather}, r.step(), "a new crowd has its own patience")
}

func TestFenced(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	_, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "another")
	require.NoError(t, err)
	_, err = r.work.Step(t.Context(), r.fence)
	require.ErrorIs(t, err, lease.ErrFenced)
	require.Equal(t, "NULL", r.Column(1, "CMINMSGS_DATE_PROCESSED"))
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	r.owe(2, "SUCCEEDED")
	r.Exec("DELETE FROM cminmsgs WHERE CMINMSGS_ID = 2")
	r.work.config.Batch = 1
	r.step()
	r.owe(3, "DEAD")
	r.exec("UPDATE proc_state SET backfill_abandoned_at = now(), backfill_abandoned_reason = 'row-missing' WHERE msg_id = 2")
	reg := prometheus.NewPedanticRegistry()
	NewMetrics(reg, r.pool, store.New(time.UTC))
	families, err := reg.Gather()
	require.NoError(t, err)
	var got []string
	for _, f := range families {
		v := f.GetMetric()[0].GetGauge().GetValue()
		if strings.HasSuffix(f.GetName(), "_seconds") {
			require.Positive(t, v)
			continue
		}
		got = append(got, fmt.Sprint(f.GetName(), " ", v))
	}
	require.Equal(t, []string{"msgx_backfill_abandoned 1", "msgx_backfill_unmarked_terminal 1"}, got)

	r.pool.Close()
	reg = prometheus.NewPedanticRegistry()
	NewMetrics(reg, r.pool, store.New(time.UTC))
	families, err = reg.Gather()
	require.NoError(t, err)
	require.Empty(t, families, "what cannot be read is absent")
}
