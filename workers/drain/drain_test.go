package drain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/workers/drain"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

const lane = "default"

// counting is a role whose work is rows of a table: it marks them done, oldest first.
type counting struct {
	pool  *pgxpool.Pool
	steps atomic.Int64
	fail  func(step int64) error
}

func (c *counting) Pending(ctx context.Context, q db.Querier) (pending bool, err error) {
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM work WHERE NOT done)").Scan(&pending)
	return pending, err
}

func (c *counting) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	if c.fail != nil {
		if err := c.fail(c.steps.Add(1)); err != nil {
			return drain.Next{}, err
		}
	}
	var n int64
	err := f.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE work SET done = true, by_epoch = $1 WHERE NOT done", f.Epoch())
		n = tag.RowsAffected()
		return err
	})
	return drain.Next{Again: n > 0}, err
}

// rig is one database with a lane and a table of work.
type rig struct {
	pool  *pgxpool.Pool
	waker *drain.Waker
	role  *counting
}

func setup(t *testing.T) *rig {
	t.Helper()
	pool := dbtest.New(t)
	_, err := pool.Exec(t.Context(), "CREATE TABLE work (id bigserial PRIMARY KEY, done boolean NOT NULL DEFAULT false, by_epoch bigint)")
	require.NoError(t, err)
	require.NoError(t, lease.Ensure(t.Context(), pool, lane, jobs.AllRoles()))
	inserter, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return &rig{pool: pool, waker: drain.NewWaker(lane, inserter), role: &counting{pool: pool}}
}

func (r *rig) drain(c drain.Config) *drain.Drain {
	return &drain.Drain{
		Role: jobs.RoleBackfill, Work: r.role, Pool: r.pool, Waker: r.waker, Config: c,
		Log: slog.New(slog.DiscardHandler), Stopping: make(chan struct{}),
	}
}

// pod starts a River client that works the role.
func (r *rig) pod(t *testing.T, name string, c drain.Config) {
	t.Helper()
	workers := river.NewWorkers()
	river.AddWorker(workers, drain.NewWorker[jobs.Backfill](r.drain(c), name))
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		ID: name, Workers: workers, Queues: map[string]river.QueueConfig{string(jobs.RoleBackfill): {MaxWorkers: 2}},
		FetchCooldown: time.Millisecond, FetchPollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, client.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, client.StopAndCancel(ctx))
	})
}

// enqueue puts a row in and wakes the role, in one transaction.
func (r *rig) enqueue(ctx context.Context) error {
	return db.InTx(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO work DEFAULT VALUES"); err != nil {
			return err
		}
		return r.waker.Wake(ctx, tx, jobs.RoleBackfill)
	})
}

func (r *rig) undone(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, r.pool.QueryRow(t.Context(), "SELECT count(*) FROM work WHERE NOT done").Scan(&n))
	return n
}

func (r *rig) status(t *testing.T) lease.Status {
	t.Helper()
	s, err := lease.Read(t.Context(), r.pool, lane, []jobs.Role{jobs.RoleBackfill})
	require.NoError(t, err)
	require.Len(t, s, 1)
	return s[0]
}

// watcher looks at all roles, each with the work of the table, on the clock given.
func (r *rig) watcher(now func() time.Time) *drain.Watcher {
	w := &drain.Watcher{
		Lane: lane, Roles: map[jobs.Role]drain.Role{}, Pool: r.pool, Waker: r.waker, Config: drain.Defaults(),
		Log: slog.New(slog.DiscardHandler), Now: now,
	}
	for _, role := range jobs.AllRoles() {
		w.Roles[role] = r.role
	}
	return w
}

// hasty drains close the moment they see nothing, so that closing and enqueuing meet all the time.
func hasty() drain.Config {
	c := drain.Defaults()
	c.Linger, c.Glance = 0, time.Millisecond
	return c
}

// O3, K02: rows committed at the worst moment are picked up without a later insert and without the watcher.
func TestK02_NoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.pod(t, "a", hasty())
	r.pod(t, "b", hasty())
	for i := range 400 {
		require.NoError(t, r.enqueue(t.Context()))
		if i%10 == 0 { // silence: nothing but this wake-up can bring the row through
			require.Eventually(t, func() bool { return r.undone(t) == 0 }, 10*time.Second, time.Millisecond, "row %d stayed behind", i)
		}
	}
	require.Eventually(t, func() bool { return r.undone(t) == 0 }, 10*time.Second, time.Millisecond)
}

// job is a drain job outside River, completed by flag.
func job(r *rig, s lease.Status, holder string) (drain.Job, *atomic.Bool) {
	done := &atomic.Bool{}
	return drain.Job{
		Wake: jobs.Wake{Lane: lane, Epoch: s.Epoch}, Holder: holder,
		Complete: func(context.Context, pgx.Tx) error { done.Store(true); return nil },
	}, done
}

// K04: a worker that was stopped while another took over is refused, whatever it was about to commit.
func TestK04_StoppedWorkerIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t)
	old, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "a")
	require.NoError(t, err)
	require.NoError(t, r.enqueue(t.Context()))

	now := time.Now()
	w := r.watcher(func() time.Time { return now })
	require.NoError(t, w.Look(t.Context()))
	now = now.Add(drain.Defaults().Takeover - time.Second)
	require.NoError(t, old.Beat(t.Context(), false)) // life
	require.NoError(t, w.Look(t.Context()))
	now = now.Add(2 * time.Second)
	require.NoError(t, w.Look(t.Context()))
	require.Equal(t, int64(1), r.status(t).Epoch, "a holder that beats is not taken over")

	now = now.Add(drain.Defaults().Takeover)
	require.NoError(t, w.Look(t.Context()))
	require.Equal(t, int64(2), r.status(t).Epoch)
	require.ErrorIs(t, old.Tx(t.Context(), func(pgx.Tx) error { return errors.New("must not run") }), lease.ErrFenced)
	var waiting int
	require.NoError(t, r.pool.QueryRow(t.Context(),
		"SELECT count(*) FROM river_job WHERE kind = 'backfill' AND state = 'available' AND args->>'epoch' = '2'").Scan(&waiting))
	require.Equal(t, 1, waiting)
}

// The watcher leaves a holder alone that is inside a transaction, however long it takes.
func TestOpenTransactionIsLife(t *testing.T) {
	t.Parallel()
	r := setup(t)
	f, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "a")
	require.NoError(t, err)
	seen := r.status(t)
	require.NoError(t, f.Tx(t.Context(), func(pgx.Tx) error {
		return db.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
			_, ok, err := lease.Advance(t.Context(), tx, lane, seen)
			require.False(t, ok)
			return err
		})
	}))
}

// A job that River runs twice fences its own first run.
func TestSecondRunFencesTheFirst(t *testing.T) {
	t.Parallel()
	r := setup(t)
	first, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "pod/7.1")
	require.NoError(t, err)
	_, err = lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "pod/7.2")
	require.NoError(t, err)
	require.ErrorIs(t, first.Tx(t.Context(), func(pgx.Tx) error { return nil }), lease.ErrFenced)
}

// A wake-up of an epoch that is over does nothing, and is no error that River would retry.
func TestStaleWakeUpDoesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.NoError(t, r.enqueue(t.Context()))
	j, done := job(r, lease.Status{Epoch: 99}, "a")
	require.NoError(t, r.drain(hasty()).Run(t.Context(), j))
	require.False(t, done.Load())
	require.Equal(t, 1, r.undone(t))
}

// A wake-up of another lane does nothing: under that lane's fence this pod would work beside the holder of its own lane's.
func TestWakeUpOfAnotherLaneDoesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.NoError(t, r.enqueue(t.Context()))
	require.NoError(t, lease.Ensure(t.Context(), r.pool, "misnamed", jobs.AllRoles()))
	j, done := job(r, r.status(t), "a")
	j.Wake.Lane = "misnamed"
	require.NoError(t, r.drain(hasty()).Run(t.Context(), j))
	require.False(t, done.Load())
	require.Equal(t, 1, r.undone(t))
}

// Rows of leases that somebody deleted are made anew: work goes on, and who worked under the old row is refused.
func TestDeletedLeasesComeBack(t *testing.T) {
	t.Parallel()
	r := setup(t)
	old, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "a")
	require.NoError(t, err)
	_, err = r.pool.Exec(t.Context(), "DELETE FROM pipeline_lease")
	require.NoError(t, err)
	require.NoError(t, r.enqueue(t.Context()), "nobody is there to be woken")

	now := time.Now()
	w := r.watcher(func() time.Time { return now })
	require.NoError(t, w.Look(t.Context()))
	require.Equal(t, int64(1), r.status(t).Epoch)
	require.ErrorIs(t, old.Tx(t.Context(), func(pgx.Tx) error { return errors.New("must not run") }), lease.ErrFenced)
	require.NoError(t, w.Look(t.Context()))
	now = now.Add(drain.Defaults().Takeover)
	require.NoError(t, w.Look(t.Context()))
	j, done := job(r, r.status(t), "b")
	require.NoError(t, r.drain(hasty()).Run(t.Context(), j))
	require.True(t, done.Load())
	require.Zero(t, r.undone(t))
}

// A paused queue is told once and not taken over again and again: nobody would work the wake-up. Once it is resumed work goes on.
func TestPausedQueueIsNotTakenOver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.NoError(t, r.enqueue(t.Context()))
	var out bytes.Buffer
	now, paused := time.Now(), true
	w := r.watcher(func() time.Time { return now })
	w.Log = slog.New(slog.NewTextHandler(&out, nil))
	w.Paused = func(_ context.Context, _ pgx.Tx, role jobs.Role) (bool, error) {
		return paused && role == jobs.RoleBackfill, nil
	}
	look := func() {
		now = now.Add(drain.Defaults().Takeover)
		require.NoError(t, w.Look(t.Context()))
	}
	for range 3 {
		look()
	}
	require.Equal(t, int64(1), r.status(t).Epoch)
	require.Equal(t, 1, strings.Count(out.String(), `msg="queue paused" role=backfill`), out.String())
	paused = false
	look()
	require.Equal(t, int64(2), r.status(t).Epoch)
}

// A drain that is closed is not silent: work that came this moment has a wake-up under way, and is not taken over.
func TestWakeUpUnderWayIsNotSilence(t *testing.T) {
	t.Parallel()
	r := setup(t)
	c := &clock{at: time.Now()}
	w := r.watcher(c.now)
	require.NoError(t, w.Look(t.Context()))
	c.move(time.Hour)
	require.NoError(t, w.Look(t.Context()))
	require.NoError(t, r.enqueue(t.Context()))
	c.move(time.Second)
	require.NoError(t, w.Look(t.Context()))
	require.Equal(t, int64(1), r.status(t).Epoch, "the wake-up has had a second at most")
	c.move(drain.Defaults().Takeover)
	require.NoError(t, w.Look(t.Context()))
	require.Equal(t, int64(2), r.status(t).Epoch, "nobody has taken the wake-up")
}

// A stopping pod hands over: a job of the same epoch waits for another pod, and the drain is closed.
func TestStoppingPodHandsOver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	d := r.drain(drain.Defaults())
	stopping := make(chan struct{})
	close(stopping)
	d.Stopping = stopping
	j, done := job(r, r.status(t), "a")
	require.NoError(t, d.Run(t.Context(), j))
	require.True(t, done.Load())
	require.False(t, r.status(t).Open())
	var waiting int
	require.NoError(t, r.pool.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE kind = 'backfill' AND state = 'available'").Scan(&waiting))
	require.Equal(t, 1, waiting)
}

// Errors and panics of a step make the drain pause and go on: nothing is lost and the pod lives.
func TestTroubleIsSurvived(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.role.fail = func(step int64) error {
		switch step {
		case 1:
			return fmt.Errorf("away")
		case 2:
			panic("a defect")
		}
		return nil
	}
	require.NoError(t, r.enqueue(t.Context()))
	j, done := job(r, r.status(t), "a")
	require.NoError(t, r.drain(hasty()).Run(t.Context(), j))
	require.True(t, done.Load())
	require.Zero(t, r.undone(t))
}

// After a takeover two runs of one role meet in one pod: their steps never overlap, for roles keep state between steps.
func TestOneRunAtATimeInAPod(t *testing.T) {
	t.Parallel()
	r := setup(t)
	inside, leave := make(chan struct{}), make(chan struct{})
	r.role.fail = func(step int64) error {
		if step == 1 {
			close(inside)
			<-leave
		}
		return nil
	}
	d := r.drain(hasty())
	old, _ := job(r, r.status(t), "pod/1.1")
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.WithoutCancel(t.Context()), old) }()
	<-inside

	second, _ := job(r, r.status(t), "pod/2.1")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, d.Run(ctx, second), context.DeadlineExceeded)
	require.Equal(t, "pod/1.1", r.status(t).Holder, "who waits for his turn holds nothing")
	close(leave)
	require.NoError(t, <-ended)
	require.NoError(t, d.Run(t.Context(), second))
}
