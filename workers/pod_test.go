package workers_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/workers"
	"msgexchange/workers/drain"
	"msgexchange/workers/maintenance"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

// nothing is a role without work.
type nothing struct{}

func (nothing) Step(context.Context, *lease.Fence) (drain.Next, error) { return drain.Next{}, nil }
func (nothing) Pending(context.Context, db.Querier) (bool, error)      { return false, nil }

// setup makes a pod with the roles given on a database of its own.
func setup(t *testing.T, roles ...jobs.Role) (*workers.Pod, *pgxpool.Pool) {
	t.Helper()
	pool := dbtest.New(t)
	log := slog.New(slog.DiscardHandler)
	inserter, err := workers.NewInserter(pool, log)
	require.NoError(t, err)
	keeper, err := maintenance.New(maintenance.Deps{Pool: pool, Store: store.New(time.UTC), Jobs: inserter, Zone: time.UTC, Log: log, Now: time.Now})
	require.NoError(t, err)
	work := map[jobs.Role]drain.Role{}
	for _, r := range jobs.AllRoles() {
		work[r] = nothing{}
	}
	pod, err := workers.New(workers.Deps{
		Name: "poller", Lane: "default", Pool: pool, Waker: drain.NewWaker("default", inserter), Work: work, Roles: roles,
		Keeper: keeper, Drain: drain.Defaults(), Grace: 5 * time.Second, Log: log,
	})
	require.NoError(t, err)
	return pod, pool
}

// run runs the pod until the test has seen what it waits for.
func run(t *testing.T, pod *workers.Pod, seen func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- pod.Run(ctx) }()
	require.Eventually(t, seen, 60*time.Second, 50*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

// K03: the leader is a pod that only polls. Jobs of every kind there is whose worker died are put back, not discarded, for a
// leader knows all kinds; and its ticks wait for a pod that does such work.
func TestK03_leaderWithoutTheRolePutsJobsBack(t *testing.T) {
	t.Parallel()
	pod, pool := setup(t, jobs.RolePoll)
	samples, err := filepath.Glob("../jobs/testdata/args/*.json")
	require.NoError(t, err)
	kinds := 0
	for _, sample := range samples {
		args, err := os.ReadFile(sample)
		require.NoError(t, err)
		kind, _, _ := strings.Cut(filepath.Base(sample), ".")
		if kind == (jobs.PollInbox{}).Kind() || kind == (jobs.Tick{}).Kind() { // worked here, and seen below
			continue
		}
		kinds++
		_, err = pool.Exec(t.Context(), `
			INSERT INTO river_job (state, kind, queue, args, attempt, max_attempts, attempted_at, attempted_by)
			VALUES ('running', $1, 'of-the-dead', $2, 1, 1000, now() - interval '1 hour', '{dead}')`, kind, args)
		require.NoError(t, err)
	}
	require.Equal(t, len(jobs.AllRoles()), kinds, "every role but poll, and maintain")
	run(t, pod, func() bool {
		var put, ticks int
		require.NoError(t, pool.QueryRow(t.Context(), `
			SELECT count(*) FILTER (WHERE attempted_by = '{dead}' AND state IN ('retryable', 'available')),
			       count(*) FILTER (WHERE kind = 'maintenance_tick' AND state = 'available') FROM river_job`).Scan(&put, &ticks))
		return put == kinds && ticks == 1
	})
}

// K03: a pod that knows no kind, because it only serves HTTP and watches, does not lead: it would put nothing back and make
// no ticks.
func TestK03_podWithoutRolesNeverLeads(t *testing.T) {
	t.Parallel()
	pod, pool := setup(t)
	run(t, pod, func() bool { // it has begun: its first wake-ups are there
		var woken, leaders int
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM river_job), (SELECT count(*) FROM river_leader)`).Scan(&woken, &leaders))
		require.Zero(t, leaders)
		return woken == len(jobs.AllRoles())
	})
	var leaders int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM river_leader`).Scan(&leaders))
	require.Zero(t, leaders)
}

// The table of jobs stays small: what is over goes after an hour, a day, a week.
func TestJobsThatAreOverGo(t *testing.T) {
	t.Parallel()
	pod, pool := setup(t, jobs.RolePoll)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO river_job (state, kind, queue, args, attempt, max_attempts, finalized_at, tags)
		SELECT state::river_job_state, 'maintain', 'maintenance', '{}', 1, 1, now() - kept::interval + d.off, ARRAY[d.tag]
		FROM (VALUES ('completed', '1 hour'), ('cancelled', '24 hours'), ('discarded', '7 days')) AS k(state, kept),
		     (VALUES (interval '-10 minutes', 'old'), (interval '30 minutes', 'young')) AS d(off, tag)`)
	require.NoError(t, err)
	count := func(tag string) (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE $1 = ANY(tags)`, tag).Scan(&n))
		return n
	}
	run(t, pod, func() bool { return count("old") == 0 })
	require.Equal(t, 3, count("young"))
}
