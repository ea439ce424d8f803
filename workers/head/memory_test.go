package head_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/lease"
	"msgexchange/jobs"
)

// What the head remembers of a flight is not what it is any more once somebody else has written under its lock.
func TestMemoryEndsWithAVisit(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	r.visited()
}

// visited has somebody change flight 15 under the head's lock, and the head change it after that.
func (r *rig) visited() {
	r.t.Helper()
	require.NoError(r.t, pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		require.NoError(r.t, lease.Block(r.t.Context(), tx, jobs.RoleHead))
		_, err := tx.Exec(r.t.Context(), "UPDATE flight_schd SET state_version = 41 WHERE flid = 15")
		return err
	}))
	r.put(stand(2, 15, "210"))
	r.finish()
	require.Equal(r.t, []string{"15 stand 210 v42"}, r.flights())
}

// A server that comes back without the last commits (one that was not the leader's, or that lost what had not reached its disk) has
// messages unfinished whose effects the head remembers. They are applied anew, as if nothing had been known.
func TestMemoryEndsWithALostCommit(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	tables := []string{"flight_schd", "proc_state", "pipeline_lease", "msg_event", "msg_identity", "flight_change"}
	for _, table := range tables {
		r.exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
	}
	r.put(stand(2, 15, "210"))
	r.exec("INSERT INTO kept_proc_state SELECT * FROM proc_state WHERE msg_id = 2")
	r.finish()
	const outcome = "SELECT msg_id || ' ' || state FROM proc_state UNION ALL SELECT target || ' ' || state_version FROM msg_event ORDER BY 1"
	want := r.list(outcome)
	for _, table := range tables {
		r.exec("DELETE FROM " + table)
		r.exec("INSERT INTO " + table + " OVERRIDING SYSTEM VALUE SELECT * FROM kept_" + table)
	}
	require.NotEqual(t, want, r.list(outcome))
	r.finish()
	require.Equal(t, want, r.list(outcome))
	require.Equal(t, []string{"15 stand 210 v2"}, r.flights())
}

// A batch that was decided and not committed is forgotten, whatever the reason.
func TestMemoryForgetsWhatWasNotCommitted(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	for _, why := range []func(pgx.Tx) error{
		func(tx pgx.Tx) error { return tx.Conn().Close(t.Context()) },
		func(pgx.Tx) error { panic("a defect") },
	} {
		id := r.put(stand(int(r.last)+1, 15, fmt.Sprint(200+r.last)))
		once := true
		r.onWake = func(tx pgx.Tx) error {
			if !once {
				return nil
			}
			once = false
			return why(tx)
		}
		_, _ = r.head.Step(t.Context(), r.fence)
		r.clock = r.clock.Add(time.Second)
		r.finish()
		require.Equal(t, "SUCCEEDED", r.one("SELECT state FROM proc_state WHERE msg_id = $1", id))
	}
	require.Equal(t, []string{"15 stand 202 v3"}, r.flights())
	require.Equal(t, []string{"1", "2", "3"}, r.list("SELECT state_version::text FROM msg_event WHERE target = 'KAFKA:msg' ORDER BY event_id"))
}

// A visitor after a commit that was lost with a server is still a visitor.
func TestMemoryEndsWithAVisitAfterALostCommit(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	r.exec("UPDATE pipeline_lease SET turn = turn - 1 WHERE role = 'head'") // a charge that did not reach the disk
	r.visited()
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

// A schedule of a night does not stay in memory until the next message comes.
func TestMemoryOfManyIsNotKept(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""))
	r.step()
	require.Equal(t, 1, r.head.Remembered())
	r.put(schedule(2, 1, 2500, ""))
	r.step()
	require.Zero(t, r.head.Remembered())
}
