package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/workers/maintenance"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

// rig is a keeper on a database of its own, with its own clock; each keeper it makes is a new process.
type rig struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *store.Store
	zone  *time.Location
	clock time.Time
	rest  func(context.Context, time.Duration) // between pieces; nil: the keeper's own
}

func setup(t *testing.T) *rig {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	return &rig{t: t, pool: dbtest.New(t), store: store.New(zone), zone: zone, clock: time.Date(2026, 11, 30, 2, 0, 0, 0, zone)}
}

func (r *rig) keeper(tasks ...maintenance.Task) *maintenance.Keeper {
	r.t.Helper()
	inserter, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{})
	require.NoError(r.t, err)
	k, err := maintenance.New(maintenance.Deps{
		Pool: r.pool, Store: r.store, Jobs: inserter, Zone: r.zone, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.clock },
		Rest: r.rest,
	}, tasks...)
	require.NoError(r.t, err)
	return k
}

// done ends every run that waits, as a worker would, and gives how many there were.
func (r *rig) done() int {
	r.t.Helper()
	tag, err := r.pool.Exec(r.t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE state = 'available' AND kind = 'maintain'`)
	require.NoError(r.t, err)
	return int(tag.RowsAffected())
}

func daily(line string) maintenance.Task { return maintenance.Task{Name: "archive", When: line} }

// K03: restarted every five minutes over the due time, and asked by two at once: exactly one run that day, and one the next.
func TestK03_restartsOverTheDueTime(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for day := range 2 {
		runs := 0
		for r.clock = time.Date(2026, 11, 30+day, 2, 0, 0, 0, r.zone); r.clock.Hour() < 5; r.clock = r.clock.Add(5 * time.Minute) {
			k := r.keeper(daily("0 3 * * *")) // a new process, a new leader
			require.NoError(t, k.Tick(t.Context()))
			require.NoError(t, r.keeper(daily("0 3 * * *")).Tick(t.Context()))
			runs += r.done()
		}
		require.Equal(t, 1, runs, "day %d", day)
	}
}

// K03: nothing ran for two weeks: one run, not fourteen.
func TestK03_twoWeeksOff(t *testing.T) {
	t.Parallel()
	r := setup(t)
	k := r.keeper(daily("0 3 * * *"))
	require.NoError(t, k.Tick(t.Context()), "the first sight of a task")
	require.Zero(t, r.done(), "is no reason to do it at once")
	r.clock = r.clock.AddDate(0, 0, 14)
	for range 10 {
		require.NoError(t, k.Tick(t.Context()))
		r.clock = r.clock.Add(30 * time.Second)
	}
	require.Equal(t, 1, r.done())
}

// K03: two leaders' ticks at the same moment take a due time once.
func TestK03_ticksAtOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.NoError(t, r.keeper(daily("0 3 * * *")).Tick(t.Context()))
	r.clock = r.clock.Add(2 * time.Hour)
	done := make(chan error)
	const ticks = 4
	for range ticks {
		k := r.keeper(daily("0 3 * * *"))
		go func() { done <- k.Tick(context.WithoutCancel(t.Context())) }()
	}
	for range ticks {
		require.NoError(t, <-done)
	}
	require.Equal(t, 1, r.done())
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	_, err := maintenance.New(maintenance.Deps{}, daily("61 3 * * *"))
	require.ErrorContains(t, err, "when archive is due")
	_, err = maintenance.New(maintenance.Deps{}, daily(""), daily(""))
	require.ErrorContains(t, err, "two tasks")
}

// started runs a River client that works the keeper's jobs.
func (r *rig) started(k *maintenance.Keeper) {
	r.t.Helper()
	w := river.NewWorkers()
	k.Register(w)
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Workers: w, Queues: map[string]river.QueueConfig{jobs.QueueMaintenance: {MaxWorkers: 2}}, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, TestOnly: true,
	})
	require.NoError(r.t, err)
	require.NoError(r.t, client.Start(r.t.Context()))
	r.t.Cleanup(func() { require.NoError(r.t, client.StopAndCancel(context.WithoutCancel(r.t.Context()))) })
}

// last is how the last run of the task went.
func (r *rig) last() store.Periodic {
	r.t.Helper()
	all, err := r.store.Periodics(r.t.Context(), r.pool)
	require.NoError(r.t, err)
	require.Len(r.t, all, 1)
	return all[0]
}

func (r *rig) order(k *maintenance.Keeper) (id int64) {
	r.t.Helper()
	require.NoError(r.t, db.InTx(r.t.Context(), r.pool, func(tx pgx.Tx) (err error) {
		id, err = k.Order(r.t.Context(), tx, "archive")
		return err
	}))
	return id
}

func TestRun_piecesAddUp(t *testing.T) {
	t.Parallel()
	r := setup(t)
	left, done := 3, make(chan struct{})
	k := r.keeper(maintenance.Task{Name: "archive", Do: func(context.Context) (maintenance.Piece, error) {
		left--
		if left == 0 {
			close(done)
		}
		return maintenance.Piece{More: left > 0, Report: maintenance.Report{Counts: map[string]int64{"messages": 5}, Findings: []string{"x"}}}, nil
	}})
	id := r.order(k)
	require.Equal(t, id, r.order(k), "a run that waits already is the same one")
	r.started(k)
	<-done
	require.Eventually(t, func() bool { return r.last().FinishedAt != nil }, 10*time.Second, 10*time.Millisecond)
	last := r.last()
	require.JSONEq(t, `{"counts":{"messages":15},"findings":["x","x","x"]}`, string(last.Report))
	require.Equal(t, id, *last.JobID)
	require.Nil(t, last.Error)
}

// K10: a run of many pieces leaves the machine to the messages for as long as it worked, piece by piece.
func TestK10_runRestsBetweenPieces(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var did []string
	var worked time.Duration
	r.rest = func(_ context.Context, d time.Duration) {
		if d < worked {
			did = append(did, fmt.Sprintf("a rest of %s after work of %s", d, worked))
			return
		}
		did = append(did, "rest")
	}
	done := make(chan struct{})
	k := r.keeper(maintenance.Task{Name: "archive", Do: func(context.Context) (maintenance.Piece, error) {
		began := time.Now()
		did = append(did, "piece")
		last := len(did) == 5
		if last {
			close(done)
		}
		worked = time.Since(began)
		return maintenance.Piece{More: !last}, nil
	}})
	r.order(k)
	r.started(k)
	<-done
	require.Eventually(t, func() bool { return r.last().FinishedAt != nil }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, []string{"piece", "rest", "piece", "rest", "piece"}, did)
}

// A failure is kept for all to see, and the job stays to be tried again.
func TestRun_failsClosed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	k := r.keeper(maintenance.Task{Name: "archive", Do: func(context.Context) (maintenance.Piece, error) {
		return maintenance.Piece{Report: maintenance.Report{Counts: map[string]int64{"messages": 1}}}, errors.New("no room")
	}})
	id := r.order(k)
	r.started(k)
	require.Eventually(t, func() bool {
		var state string
		require.NoError(t, r.pool.QueryRow(t.Context(), `SELECT state FROM river_job WHERE id = $1`, id).Scan(&state))
		return state == string(rivertype.JobStateRetryable)
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "no room", *r.last().Error)
	require.JSONEq(t, `{"counts":{"messages":1}}`, string(r.last().Report))
}
