package workers_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

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

// K03: the leader is a pod that only polls. Jobs of every other kind whose worker died are put back, not discarded, for a
// leader knows all kinds; and its ticks wait for a pod that does such work.
func TestK03_leaderWithoutTheRolePutsJobsBack(t *testing.T) {
	t.Parallel()
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
	_, err = pool.Exec(t.Context(), `
		INSERT INTO river_job (state, kind, queue, args, attempt, max_attempts, attempted_at, attempted_by)
		SELECT 'running', kind, queue, args::jsonb, 1, 1000, now() - interval '1 hour', '{dead}'
		FROM (VALUES ('maintain', 'maintenance', '{"task":"of-a-newer-version"}'), ('process_head', 'head', '{"lane":"other","epoch":1}'),
		             ('deliver_msg', 'msg', '{"lane":"other","epoch":1}'), ('backfill', 'backfill', '{"lane":"other","epoch":1}')) AS j(kind, queue, args)`)
	require.NoError(t, err)

	pod, err := workers.New(workers.Deps{
		Name: "poller", Lane: "default", Pool: pool, Waker: drain.NewWaker("default", inserter), Work: work, Roles: []jobs.Role{jobs.RolePoll},
		Keeper: keeper, Drain: drain.Defaults(), Grace: 5 * time.Second, Log: log,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- pod.Run(ctx) }()
	states := func() (put, ticks int) {
		require.NoError(t, pool.QueryRow(t.Context(), `
			SELECT count(*) FILTER (WHERE attempted_by = '{dead}' AND state IN ('retryable', 'available')),
			       count(*) FILTER (WHERE kind = 'maintenance_tick' AND state = 'available') FROM river_job`).Scan(&put, &ticks))
		return put, ticks
	}
	require.Eventually(t, func() bool { put, ticks := states(); return put == 4 && ticks == 1 }, 30*time.Second, 50*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}
