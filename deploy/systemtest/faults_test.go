package systemtest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// muteKafka makes the broker take records and answer nothing, until it is told otherwise; asked counts them.
func (w *world) muteKafka(on bool) {
	w.mute.Store(on)
	if !on {
		return
	}
	w.kafka.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if !w.mute.Load() {
			return nil, nil, false
		}
		w.kafka.KeepControl()
		w.muted.Add(1)
		return nil, nil, true
	})
}

// SIGTERM while the process still starts ends with 0 too: here PostgreSQL hangs at the first word.
func TestK05_SIGTERMWhileStarting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var heard atomic.Bool
	w.viaPG.Watch(func([]byte) bool { heard.Store(true); return false })
	thaw := w.viaPG.freeze(t)
	p := w.start(t, "a")
	eventually(t, 20*time.Second, func() error {
		if !heard.Load() {
			return fmt.Errorf("it has not asked yet")
		}
		return nil
	})
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(30*time.Second))
	thaw()
}

// SIGTERM and kill -9 in the middle of a send: what follows goes on within a minute; SIGTERM spends no attempt, kill -9 at
// most one per message in hand (K05).
func TestK05_MidSend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end      func(p *pod)
		attempts int64
	}{
		"SIGTERM": {func(p *pod) {
			p.signal(syscall.SIGTERM)
			require.Zero(p.t, p.exit(30*time.Second))
		}, 1},
		"kill -9": {(*pod).kill, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.start(t, "a")
			w.put(t, schedule(1, 1, flights))
			w.settled(t, 1, 30*time.Second)
			w.muteKafka(true)
			stop := w.changes(t, 20*time.Millisecond)
			eventually(t, 20*time.Second, func() error {
				if w.muted.Load() == 0 {
					return fmt.Errorf("nothing is being sent yet")
				}
				return nil
			})
			began := time.Now()
			tc.end(a)
			t.Logf("%s: ended after %s", name, time.Since(began).Round(100*time.Millisecond))
			w.muteKafka(false)
			w.start(t, "b")
			n := stop()
			began = time.Now()
			w.settled(t, n, time.Minute)
			t.Logf("%s: resumed and done after %s", name, time.Since(began).Round(100*time.Millisecond))
			require.LessOrEqual(t, w.number(t, "SELECT max(attempts) FROM proc_state"), tc.attempts)
			w.requireExact(t, n)
		})
	}
}

// The answer to every fifth COMMIT is lost: it was carried out, and the pod sees its connection end. No message is done
// twice, no event is there twice, nobody is charged for it, and it does not go on for ever (K06).
func TestK06_CommitUnheard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	w.put(t, schedule(1, 1, flights))
	w.settled(t, 1, 30*time.Second)
	w.ear.loseCommits.Store(5)
	stop := w.changes(t, 20*time.Millisecond)
	eventually(t, 60*time.Second, func() error {
		if n := w.ear.lost.Load(); n < 25 {
			return fmt.Errorf("%d answers lost so far", n)
		}
		return nil
	})
	n := stop()
	w.settled(t, n, 60*time.Second) // while answers go on being lost
	w.ear.loseCommits.Store(0)
	w.requireExact(t, n)
	t.Logf("%d answers to COMMIT were lost", w.ear.lost.Load())
	require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state"))
	require.Equal(t, int64(n), w.number(t, "SELECT count(*) FROM proc_state WHERE backfill_at IS NOT NULL"))
	eventually(t, 20*time.Second, func() error {
		log := p.log.String()
		if began, ended := strings.Count(log, `"worker in trouble"`), strings.Count(log, `"worker recovered"`); began != ended {
			return fmt.Errorf("%d troubles, %d ended", began, ended)
		}
		return nil
	})
}

// A text with a NUL among good ones: it alone is DEAD(MALFORMED), whatever our database thinks of such characters (K09).
func TestK09_NULAmongGoodRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bad []int64
	w.put(t, schedule(1, 1, 1))
	for i := range 40 {
		w.put(t, flop(2+i, 1, "STND", fmt.Sprint(i)))
		if i%10 == 5 {
			bad = append(bad, w.put(t, strings.Replace(flop(100+i, 1, "STND", "bad"), "bad", "b\x00d", 1)))
			bad = append(bad, w.put(t, "\x00"))
			bad = append(bad, w.put(t, strings.Replace(flop(200+i, 1, "STND", "bad"), "AODB", "A\x00B", 1)))
		}
	}
	w.start(t, "a")
	w.settled(t, 41+len(bad), 40*time.Second)
	require.Equal(t, map[string]int{"SUCCEEDED": 41, "DEAD": len(bad)}, w.states(t))
	require.Equal(t, int64(len(bad)), w.number(t, "SELECT count(*) FROM proc_state WHERE msg_id = ANY($1) AND error_class = 'MALFORMED' AND attempts = 1", bad))
	require.Equal(t, "39", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"))
	require.Zero(t, w.number(t, "SELECT count(*) FROM proc_state WHERE state <> 'DEAD' AND attempts <> 1"), "their neighbours pay nothing")
}
