package head_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
	"msgexchange/workers/head"
)

// O1: a head in backoff holds everything behind it, and the step says until when.
func TestO1_backoffHoldsTheLine(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), envelope(2, "FLOP", "XXXX", ""), stand(3, 15, "208"))
	require.Equal(t, drain.Next{Again: true}, r.step())
	r.requireStates("1 SUCCEEDED 1x", "2 FAILED UNSUPPORTED/UNSUPPORTED 1x", "3 PENDING 0x")
	require.Equal(t, []string{"15 v1"}, r.flights(), "3 was not applied, though it was in the batch")

	before := r.everything()
	require.Equal(t, drain.Next{Wait: time.Second}, r.step())
	r.clock = r.clock.Add(time.Second - time.Millisecond)
	require.Equal(t, drain.Next{Wait: time.Millisecond}, r.step())
	require.Equal(t, before, r.everything())
	pending, err := r.head.Pending(t.Context(), r.pool)
	require.NoError(t, err)
	require.True(t, pending, "the drain must not close before it")

	r.clock = r.clock.Add(time.Millisecond)
	var waits []time.Duration
	for next := r.step(); next != (drain.Next{}); next = r.step() {
		if next.Wait > 0 {
			waits = append(waits, next.Wait)
			r.clock = r.clock.Add(next.Wait)
		}
	}
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}, waits)
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD EXHAUSTED/UNSUPPORTED 5x", "3 SUCCEEDED 1x")
	require.Equal(t, []string{"15 stand 208 v2"}, r.flights())

	r.put(stand(4, 15, "209"))
	r.exec("UPDATE proc_state SET state = 'FAILED', next_attempt_at = $1 WHERE msg_id = 4", r.clock.Add(time.Minute))
	require.Equal(t, drain.Next{Wait: drain.LongestNap}, r.step(), "O3: an older one that another pod puts back is not overslept")
}

// O1: nothing above the watermark is taken, whatever lies there.
func TestO1_neverAboveTheWatermark(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "1"), stand(3, 15, "3"))
	r.exec("UPDATE inbox_cursor SET committed_up_to = 2")
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 PENDING 0x")
	pending, err := r.head.Pending(t.Context(), r.pool)
	require.NoError(t, err)
	require.False(t, pending)
	r.exec("UPDATE inbox_cursor SET committed_up_to = 3")
	r.finish()
	require.Equal(t, []string{"15 stand 3 v3"}, r.flights())
}

// O1: a late arrival goes before everything that is unfinished.
func TestO1_lateArrivalIsNext(t *testing.T) {
	t.Parallel()
	r := setup(t, func(c *head.Config) { c.Batch = 1 })
	r.put(schedule(1, 15, 1, ""))
	r.last = 2
	r.put(stand(3, 15, "3"))
	r.finish()
	r.put(flop(4, 15, "RENO", "<RENO>B4</RENO>"))
	r.last = 1
	r.put(flop(2, 15, "RENO", "<RENO>B2</RENO>"))
	r.exec("UPDATE inbox_cursor SET committed_up_to = 4")
	r.finish()
	require.Equal(t, []string{"1", "3", "2", "4"}, r.list("SELECT msg_id::text FROM msg_event WHERE target = 'KAFKA:msg' ORDER BY event_id"))
}

// O5: the attempt is on record, for everybody to see, before the text is even read.
func TestO5_attemptBeforeWork(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text, stand(2, 15, "2"))
	r.forget(1, text)
	var seen []string
	r.onText = func(int64) error {
		seen = append(r.states(), r.list("SELECT count(processing_started_at)::text FROM proc_state")...)
		return nil
	}
	r.die()
	require.Equal(t, []string{"1 PENDING 1x", "2 PENDING 1x", "2"}, seen)

	r.step()
	r.requireStates("1 SUCCEEDED 2x", "2 PENDING 1x")
	r.finish()
	r.requireStates("1 SUCCEEDED 2x", "2 SUCCEEDED 2x")
}

// O5, K23: a message that killed its worker each time is DEAD without another try.
func TestO5_spentIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text, schedule(2, 16, 1, ""))
	r.forget(1, text)
	for range 5 {
		r.die()
	}
	r.onText = func(int64) error { t.Error("read again"); return nil }
	require.Equal(t, drain.Next{Again: true}, r.step())
	r.requireStates("1 DEAD EXHAUSTED/INFRA 5x", "2 PENDING 1x")
	require.Equal(t, "1", r.one("SELECT msg_id::text FROM proc_state WHERE backfill_next_at IS NOT NULL"))
	require.Equal(t, 1, r.woken[jobs.RoleBackfill])
	require.InDelta(t, 1, r.metric("msgx_messages_total", "EXHAUSTED", "none", "DEAD"), 0)
	require.Contains(t, r.log.String(), "level=ERROR msg=\"message processed\" msg_id=1 trace_id="+outbox.TraceID(message.Position{ID: 1}))
	r.finish()
	r.requireStates("1 DEAD EXHAUSTED/INFRA 5x", "2 SUCCEEDED 2x")
}

// O5: what a dead worker left behind is tried alone, so that a killer takes no neighbours with it.
func TestO5_suspectsAreTriedAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"), stand(3, 15, "3"), stand(4, 15, "4"))
	r.exec("UPDATE proc_state SET attempts = 1, processing_started_at = $1 WHERE msg_id = 2", r.clock)
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 PENDING 1x", "3 PENDING 0x", "4 PENDING 0x")
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 2x", "3 PENDING 0x", "4 PENDING 0x")
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 2x", "3 SUCCEEDED 1x", "4 SUCCEEDED 1x")
}

// The head deadline counts from the first try, not from arrival.
func TestHeadDeadline(t *testing.T) {
	t.Parallel()
	r := setup(t, func(c *head.Config) { c.Retry.MaxAttempts = 100 })
	r.put(envelope(1, "FLOP", "XXXX", ""))
	r.clock = r.clock.Add(24 * time.Hour)
	r.step()
	r.requireStates("1 FAILED UNSUPPORTED/UNSUPPORTED 1x")
	r.clock = r.clock.Add(10*time.Minute - 1)
	r.step()
	r.requireStates("1 FAILED UNSUPPORTED/UNSUPPORTED 2x")
	r.finish()
	r.requireStates("1 DEAD EXHAUSTED/UNSUPPORTED 3x")
}

// An outage in the middle spends no attempt, whichever of our neighbours was away.
func TestOutageSpendsNothing(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct {
		strike  func(*rig)
		charged int
	}{
		"mailbox": {func(r *rig) {
			r.onText = func(int64) error { return fault.New(fault.Outage, "mailbox", "away") }
		}, 0}, // nothing was tried, and the next try may be another pod's
		"postgres": {func(r *rig) {
			r.onWake = func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
				return err
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			text := schedule(1, 15, 1, "")
			r.put(text, stand(2, 15, "2"))
			r.forget(1, text)
			outage.strike(r)
			charged := fmt.Sprintf("%dx", outage.charged)
			for range 7 { // more than there are attempts
				r.outage()
				r.requireStates("1 PENDING "+charged, "2 PENDING "+charged)
				require.Empty(t, r.effects())
				r.clock = r.clock.Add(time.Hour) // away for longer than the head deadline, too
			}
			r.onText, r.onWake = nil, nil
			require.Equal(t, drain.Next{Again: true}, r.step())
			r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x")
		})
	}
}

// An outage while a failed message is tried again: the time away does not count, and neither do the tries.
func TestOutageDuringRetry(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := envelope(1, "FLOP", "XXXX", "")
	r.put(text)
	r.step()
	r.forget(1, text)
	r.onText = func(int64) error { return fault.New(fault.Outage, "mailbox", "away") }
	for range 7 {
		r.clock = r.clock.Add(time.Second)
		r.outage()
	}
	r.requireStates("1 FAILED UNSUPPORTED/UNSUPPORTED 1x")
	r.onText = nil
	r.step()
	r.requireStates("1 FAILED UNSUPPORTED/UNSUPPORTED 2x")
}

// What a pod that could not read the mailbox has charged is not charged again by the pod that takes the role from it.
func TestOutageOfOnePodSpendsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text)
	r.forget(1, text)
	r.onText = func(int64) error { return fault.New(fault.Outage, "mailbox", "away") }
	for range 7 { // pods, one after the other
		r.restart()
		r.outage()
		r.outage()
	}
	r.onText = nil
	r.restart()
	r.step()
	r.requireStates("1 SUCCEEDED 1x")
}

// A pod whose way to the mailbox is cut loses the role while it waits for an answer, nearly always. It holds no attempt by then: what
// it has charged it could not take back any more.
func TestOutageOfAPodThatIsRelievedWhileItAsks(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text, stand(2, 15, "2"))
	r.forget(1, text)
	away := fault.New(fault.Outage, "mailbox", "away")
	r.onText = func(int64) error { return away }
	r.outage() // so long that the role is offered
	cut, hold := r.head, r.fence
	r.onText = func(int64) error {
		r.restart()
		return away
	}
	_, err := cut.Step(t.Context(), hold)
	require.ErrorIs(t, err, away)
	r.onText = nil
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x")
}

// O2, K04: a worker that is overtaken between charge and commit commits nothing.
func TestO2_fencedCommitsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text)
	r.forget(1, text)
	r.onText = func(int64) error { r.exec("UPDATE pipeline_lease SET epoch = 2, holder = ''"); return nil }
	_, err := r.head.Step(t.Context(), r.fence)
	require.ErrorIs(t, err, lease.ErrFenced)
	r.requireStates("1 PENDING 1x")
	require.Empty(t, r.effects())
	require.Empty(t, r.rung)

	r.onText = nil
	_, err = r.head.Step(t.Context(), r.fence)
	require.ErrorIs(t, err, lease.ErrFenced)
	r.requireStates("1 PENDING 1x")

	r.fence, err = lease.Take(t.Context(), r.pool, jobs.RoleHead, jobs.Wake{Lane: lane, Epoch: 2}, "successor")
	require.NoError(t, err)
	r.head = head.New(r.config, r.deps)
	r.finish()
	r.requireStates("1 SUCCEEDED 2x")
}

// K06: a second run after the commit changes nothing, nor does one that another worker began before it.
func TestK06_secondRunChangesNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 2, "")
	r.put(text, stand(2, 15, "2"), stand(3, 99, "3"))
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 SUCCEEDED 1x")
	before := r.everything()
	r.clock = r.clock.Add(time.Hour)
	for range 2 {
		require.Zero(t, r.step())
		r.restart()
	}
	require.Equal(t, before, r.everything())
}

// K06: a message that somebody else finished while we had it in hand is not done twice; those beside it are not lost.
func TestK06_movedMeanwhile(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text, stand(2, 15, "2"))
	r.forget(1, text)
	r.onText = func(int64) error {
		r.exec("UPDATE proc_state SET state = 'SKIPPED', skip_reason = 'by-hand', finished_at = updated_at WHERE msg_id = 2")
		return nil
	}
	r.outage()
	require.Empty(t, r.effects())
	r.onText = nil
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 SKIPPED by-hand 1x")
	require.Equal(t, []string{"15 v1"}, r.flights())
}

// Large texts go in bounded batches; the first always goes.
func TestBatchIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(stand(1, 1, "1"), stand(2, 1, "2"), stand(3, 1, "3"))
	r.exec("UPDATE msg_raw SET size_bytes = 9000000")
	for done := 1; done <= 3; done++ {
		r.step()
		require.Equal(t, fmt.Sprint(done), r.one("SELECT count(*)::text FROM proc_state WHERE state = 'SUCCEEDED'"))
	}
}
