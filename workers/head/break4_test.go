package head_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/workers/drain"
	"msgexchange/workers/head"
)

// O1: what came late goes before what was read ahead and is newer, also in the middle of it.
func TestO1_lateGoesIntoAhead(t *testing.T) {
	t.Parallel()
	r := setup(t, func(c *head.Config) { c.Batch = 2 })
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	r.last = 9
	r.put(stand(10, 15, "210"), stand(11, 15, "211"), stand(12, 15, "212"))
	r.last = 13
	r.put(stand(14, 15, "214"))
	require.Equal(t, drain.Next{Again: true}, r.step())
	r.last = 12
	r.put(flop(13, 15, "RENO", "<RENO>B5</RENO>"))
	r.exec("UPDATE inbox_cursor SET committed_up_to = 14")
	r.finish()
	require.Equal(t, []string{"1", "10", "11", "12", "13", "14"}, r.order())
}

// A visitor after a commit that was lost with a server is still a visitor.
func TestMemoryEndsWithAVisitAfterALostCommit(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	r.exec("UPDATE pipeline_lease SET turn = turn - 1 WHERE role = 'head'") // a charge that did not reach the disk
	require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
		require.NoError(t, lease.Block(t.Context(), tx, jobs.RoleHead))
		_, err := tx.Exec(t.Context(), "UPDATE flight_schd SET state_version = 41 WHERE flid = 15")
		return err
	}))
	r.put(stand(2, 15, "210"))
	r.finish()
	require.Equal(t, []string{"15 stand 210 v42"}, r.flights())
}

// A pod of the version before sweeps under the head's lock and counts no turn.
func TestMemoryEndsWithAFlight(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT lane FROM pipeline_lease WHERE role = 'head' ORDER BY lane FOR UPDATE")
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "DELETE FROM flight_schd WHERE flid = 15")
		return err
	}))
	r.put(stand(2, 15, "210"))
	r.finish()
	require.Empty(t, r.flights())
}
