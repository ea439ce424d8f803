package head_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/workers/drain"
	"msgexchange/workers/head"
)

// pairs is a rig whose head takes two messages at a time, with a flight and four messages about it; the first two are done and the
// other two were read while they were committed.
func pairs(t *testing.T, third string) *rig {
	t.Helper()
	r := setup(t, func(c *head.Config) { c.Batch = 2 })
	r.put(schedule(1, 15, 1, ""))
	r.finish()
	r.last = 9
	r.put(stand(10, 15, "210"), third, stand(12, 15, "212"), stand(13, 15, "213"))
	r.exec("DELETE FROM msg_raw WHERE msg_id = 1")
	require.Equal(t, drain.Next{Again: true}, r.step())
	return r
}

// order is in which messages had effects.
func (r *rig) order() []string {
	return r.list("SELECT msg_id::text FROM msg_event WHERE target = 'KAFKA:msg' ORDER BY event_id")
}

// What was read ahead is used: the texts need not be there any more.
func TestAheadIsUsed(t *testing.T) {
	t.Parallel()
	r := pairs(t, stand(11, 15, "211"))
	r.exec("DELETE FROM msg_raw")
	r.finish()
	require.Equal(t, []string{"1", "10", "11", "12", "13"}, r.order())
	r.requireStates("1 SUCCEEDED 1x", "10 SUCCEEDED 1x", "11 SUCCEEDED 1x", "12 SUCCEEDED 1x", "13 SUCCEEDED 1x")
}

// O1: what came late, or was put back, goes before what was read ahead.
func TestO1_lateGoesBeforeAhead(t *testing.T) {
	t.Parallel()
	r := pairs(t, stand(11, 15, "211"))
	r.last = 4
	r.put(flop(5, 15, "RENO", "<RENO>B5</RENO>"))
	r.exec("UPDATE inbox_cursor SET committed_up_to = 13")
	r.finish()
	require.Equal(t, []string{"1", "10", "11", "5", "12", "13"}, r.order())
}

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

// O1: a message that fails holds what was read ahead, and what was read ahead is not charged for it.
func TestO1_failedHoldsAhead(t *testing.T) {
	t.Parallel()
	r := pairs(t, envelope(11, "FLOP", "XXXX", ""))
	require.Equal(t, drain.Next{Wait: time.Second}, r.step())
	r.requireStates("1 SUCCEEDED 1x", "10 SUCCEEDED 1x", "11 FAILED UNSUPPORTED/UNSUPPORTED 1x", "12 PENDING 0x", "13 PENDING 0x")
	r.finish()
	require.Equal(t, []string{"1", "10", "12", "13"}, r.order())
}

// Nothing of what another hold read ahead is used: the role was somebody else's in between.
func TestAheadEndsWithTheHold(t *testing.T) {
	t.Parallel()
	r := pairs(t, stand(11, 15, "211"))
	h := r.head
	r.restart()
	r.head = h
	r.exec("DELETE FROM msg_raw WHERE msg_id = 12")
	r.finish()
	require.Equal(t, []string{"1", "10", "11", "13"}, r.order())
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 12"), "raw-missing")
}
