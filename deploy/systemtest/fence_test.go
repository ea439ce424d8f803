package systemtest

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs"
)

// linePipeline are the roles a message passes through.
func linePipeline() []jobs.Role {
	return []jobs.Role{jobs.RolePoll, jobs.RoleHead, jobs.RoleMsg, jobs.RoleSchd, jobs.RoleBackfill}
}

// holdsAll waits until p holds every role of the line at one moment.
func (w *world) holdsAll(t *testing.T, p *pod, within time.Duration) {
	t.Helper()
	mine := "%-" + strconv.Itoa(p.PID()) + "-%"
	eventually(t, within, func() error {
		n := w.number(t, "SELECT count(*) FROM pipeline_lease WHERE holder LIKE $1 AND role <> 'request'", mine)
		if n != int64(len(linePipeline())) {
			return fmt.Errorf("pod %s holds %d roles: %s", p.Name, n, w.text(t, "SELECT coalesce(string_agg(role || ' ' || holder, ', '), '') FROM pipeline_lease"))
		}
		return nil
	})
}

// saysFenced waits until p has found out for every role of the line that it was taken over.
func (p *pod) saysFenced(within time.Duration) {
	p.t.Helper()
	eventually(p.t, within, func() error {
		for _, r := range linePipeline() {
			found := false
			for line := range strings.Lines(p.log.String()) {
				found = found || strings.Contains(line, `"worker fenced"`) && strings.Contains(line, `"role":"`+string(r)+`"`)
			}
			if !found {
				return fmt.Errorf("pod %s does not know that %s is another's", p.Name, r)
			}
		}
		return nil
	})
}

// A pod that holds every role is lost to the others in the middle of its work, and comes back when another has taken
// everything over: it commits nothing more, says so, and what came out is exact (O2, O4, K04).
func TestO2_TakenOver(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, p *pod, pg door) (back func()){
		"stopped": func(t *testing.T, p *pod, _ door) func() {
			t.Helper()
			p.signal(syscall.SIGSTOP)
			return func() { p.signal(syscall.SIGCONT) }
		},
		"partitioned": func(t *testing.T, _ *pod, pg door) func() {
			t.Helper()
			return pg.freeze(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pg, _, env := w.doors(t, nil)
			a := w.start(t, "a", env...)
			stop := w.traffic(t, 20*time.Millisecond)
			w.holdsAll(t, a, 30*time.Second)
			b := w.start(t, "b")
			b.address()
			back := lose(t, a, pg)
			lost := time.Now()
			w.holdsAll(t, b, 20*time.Second)
			t.Logf("%s: all roles taken over after %s", name, time.Since(lost).Round(100*time.Millisecond))
			back()
			a.saysFenced(30 * time.Second)
			n := stop()
			w.settled(t, n, 40*time.Second)
			require.LessOrEqual(t, w.number(t, "SELECT max(attempts) FROM proc_state"), int64(2))
			w.requireExact(t, n)
		})
	}
}

// The same after kill -9, for each role, with the time it takes on record (O4).
func TestO4_TakeoverAfterKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, "a")
	stop := w.traffic(t, 20*time.Millisecond)
	w.holdsAll(t, a, 30*time.Second)
	b := w.start(t, "b")
	b.address()
	a.kill()
	killed := time.Now()
	w.holdsAll(t, b, 20*time.Second)
	t.Logf("all roles taken over %s after kill -9", time.Since(killed).Round(100*time.Millisecond))
	n := stop()
	w.settled(t, n, 40*time.Second)
	require.LessOrEqual(t, w.number(t, "SELECT max(attempts) FROM proc_state"), int64(2))
	w.requireExact(t, n)
}

// Jobs that still run are run once more, as River's rescuer does with those it believes stuck: each second run fences the
// first, nothing is done twice (O2, K04).
func TestO2_Rescued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "a")
	stop := w.traffic(t, 20*time.Millisecond)
	w.start(t, "b")
	rescued := int64(0)
	for round := range int64(8) {
		eventually(t, 20*time.Second, func() error {
			tag, err := w.pg.Exec(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state = 'running'")
			if err != nil {
				return err
			}
			if rescued += tag.RowsAffected(); rescued < 3*(round+1) {
				return fmt.Errorf("only %d jobs were running so far", rescued)
			}
			return nil
		})
	}
	t.Logf("%d running jobs were run once more", rescued)
	n := stop()
	w.settled(t, n, 60*time.Second)
	w.requireExact(t, n)
}

// A wake-up is a hint: it may be deleted, discarded, cancelled, or wait for an hour after eight failures, all by hand in
// River's tables, and no message is late by more than one sweep (O3, K02).
func TestK02_WakeUpsByHand(t *testing.T) {
	t.Parallel()
	const sweep = 20 * time.Second // eight seconds of silence, a look a second, and the work; on a busy machine
	for name, change := range map[string]string{
		"deleted":        "DELETE FROM river_job WHERE id = NEW.id",
		"discarded":      "UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = NEW.id",
		"cancelled":      "UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = NEW.id",
		"eight failures": "UPDATE river_job SET state = 'retryable', attempt = 8, scheduled_at = now() + interval '1 hour' WHERE id = NEW.id",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.start(t, "a")
			w.put(t, schedule(1, 1, 1))
			w.settled(t, 1, 30*time.Second)
			a.signal(syscall.SIGTERM)
			require.Zero(t, a.exit(30*time.Second))

			// From now on every wake-up of the present epochs is spoilt as it is made.
			_, err := w.pg.Exec(t.Context(), `
				CREATE TABLE spoilt AS SELECT role, epoch FROM pipeline_lease;
				CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF EXISTS (SELECT 1 FROM spoilt s WHERE s.role = NEW.queue AND s.epoch = (NEW.args->>'epoch')::bigint) THEN
						`+change+`;
					END IF;
					RETURN NULL;
				END $$;
				CREATE TRIGGER spoil AFTER INSERT ON river_job FOR EACH ROW EXECUTE FUNCTION spoil();
				DELETE FROM river_job`)
			require.NoError(t, err)
			w.start(t, "b").address()
			w.put(t, flop(2, 1, "STND", "after"))
			start := time.Now()
			w.settled(t, 2, 2*sweep)
			t.Logf("%s: done after %s", name, time.Since(start).Round(100*time.Millisecond))
			require.Equal(t, "after", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"))
			require.Zero(t, w.number(t, "SELECT count(*) FROM pipeline_lease l JOIN spoilt USING (role, epoch) WHERE role IN ('poll', 'head', 'msg')"),
				"each was woken under a new epoch")
		})
	}
}

// Eight failures in a row of whatever a worker needs first, then it is there again: the work resumes within 60 s (K02).
func TestK02_EightFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	_, err := w.pg.Exec(t.Context(), "ALTER TABLE pipeline_lease RENAME TO gone; UPDATE river_job SET metadata = metadata")
	require.NoError(t, err)
	w.put(t, flop(2, 1, "STND", "after"))
	eventually(t, 90*time.Second, func() error {
		if n := w.number(t, "SELECT coalesce(max(attempt), 0) FROM river_job WHERE state <> 'completed'"); n < 8 {
			return fmt.Errorf("the wake-up has failed %d times", n)
		}
		return nil
	})
	_, err = w.pg.Exec(t.Context(), "ALTER TABLE gone RENAME TO pipeline_lease")
	require.NoError(t, err)
	w.settled(t, 2, 60*time.Second)
	require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state"))
	require.Contains(t, p.log.String(), "worker in trouble")
}
