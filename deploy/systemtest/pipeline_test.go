package systemtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Two pods, one killed with -9 while it works: order per flight, ascending event ids per partition, every effect once, all
// marked; and the survivor continues within 20 s (O2, O4, K01, K05).
func TestK05_TwoPodsOneKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const planes, changes = 20, 2000
	pods := []*pod{w.start(t, "a"), w.start(t, "b")}
	w.put(t, schedule(1, 1, planes))
	for i := range changes {
		w.put(t, flop(2+i, 1+i%planes, "STND", strconv.Itoa(i)))
		if i == changes/2 {
			w.killWorking(t, pods)
		}
	}
	w.settled(t, changes+1, 60*time.Second)

	require.Equal(t, map[string]int{"SUCCEEDED": changes + 1}, w.states(t))
	require.Equal(t, int64(planes), w.number(t, "SELECT count(*) FROM flight_schd WHERE state_version = $1", changes/planes+1), "each effective message is one version step")
	require.LessOrEqual(t, w.number(t, "SELECT max(attempts) FROM proc_state"), int64(2), "kill -9 costs one attempt at most")
	w.requireInOrder(t, "msg", changes+planes)
}

// killWorking kills the pod that holds the head.
func (w *world) killWorking(t *testing.T, pods []*pod) {
	t.Helper()
	var holder string
	eventually(t, 20*time.Second, func() error {
		holder = w.text(t, "SELECT holder FROM pipeline_lease WHERE role = 'head'")
		if holder == "" {
			return fmt.Errorf("nobody holds the head")
		}
		return nil
	})
	for _, p := range pods {
		if strings.Contains(holder, strconv.Itoa(p.PID())) {
			p.kill()
			return
		}
	}
	require.Fail(t, "no pod is the holder", "%s", holder)
}

// requireInOrder checks that every event of the topic's target arrived, and that first appearances ascend by event id in
// each partition and by state version for each flight.
func (w *world) requireInOrder(t *testing.T, topic string, events int) {
	t.Helper()
	records := w.read(t, topic)
	seen, last, version := map[string]bool{}, map[int32]int{}, map[string]int{}
	for _, r := range records {
		id := header(r, "event-id")
		if seen[id] {
			continue // at least once: a repetition carries the same id
		}
		seen[id] = true
		n, err := strconv.Atoi(id)
		require.NoError(t, err)
		require.Greater(t, n, last[r.Partition], "event ids ascend within partition %d", r.Partition)
		last[r.Partition] = n
		v, err := strconv.Atoi(header(r, "state-version"))
		require.NoError(t, err)
		require.Greater(t, v, version[string(r.Key)], "versions ascend for flight %s", r.Key)
		version[string(r.Key)] = v
	}
	require.Len(t, seen, events)
}

// A stopped pod that wakes up after another took over commits nothing (K04).
func TestK04_StoppedPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, "a")
	w.put(t, schedule(1, 1, 5))
	w.settled(t, 1, 30*time.Second)
	a.signal(syscall.SIGSTOP)
	b := w.start(t, "b")
	for i := range 50 {
		w.put(t, flop(2+i, 1+i%5, "STND", strconv.Itoa(i)))
	}
	w.settled(t, 51, 40*time.Second)
	a.signal(syscall.SIGCONT)
	for i := range 50 {
		w.put(t, flop(100+i, 1+i%5, "STND", "x"+strconv.Itoa(i)))
	}
	w.settled(t, 101, 40*time.Second)
	require.Equal(t, int64(5), w.number(t, "SELECT count(*) FROM flight_schd WHERE state_version = 21"))
	w.requireInOrder(t, "msg", 105)
	b.signal(syscall.SIGTERM)
	require.Zero(t, b.exit(30*time.Second))
}

// A rolled-back insert leaves a hole in InnoDB's ids: nothing passes it before max-commit-delay, everything at most a poll
// after it, though the pod is killed in between and the neighbours are old (K11, K12).
func TestK12_RolledBackInsert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const wait = "MSGX_PIPELINE_MAX_COMMIT_DELAY=12s" // longer than a takeover
	a := w.start(t, "a", wait)
	w.put(t, schedule(1, 1, 3))
	w.settled(t, 1, 30*time.Second)

	tx, err := w.mailbox.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	hole := insert(t, tx, flop(2, 1, "STND", "lost"))
	require.NoError(t, tx.Rollback())
	behind := w.put(t, flop(3, 1, "STND", "behind"))
	require.Equal(t, hole+1, behind)
	_, err = w.mailbox.ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_DATE_RECEIVED = '2020-01-01 00:00:00' WHERE CMINMSGS_ID = ?", behind)
	require.NoError(t, err)

	eventually(t, 10*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM inbox_hole WHERE first_id = $1 AND released_at IS NULL", hole); n != 1 {
			return fmt.Errorf("the hole at %d is not known", hole)
		}
		return nil
	})
	a.kill()
	w.start(t, "b", wait)
	require.Zero(t, w.number(t, "SELECT count(*) FROM proc_state WHERE msg_id >= $1", hole), "nothing passes an open hole")
	w.settled(t, 2, 40*time.Second)
	waited := w.number(t, "SELECT extract(epoch FROM released_at - first_seen_at)::bigint FROM inbox_hole WHERE first_id = $1", hole)
	require.GreaterOrEqual(t, waited, int64(12))
	require.LessOrEqual(t, waited, int64(15), "a poll later at most, or a takeover's end")
	require.Equal(t, "behind", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"))
}

// A lower id that commits late is processed in its place (K11).
func TestK11_LowerIDCommitsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "a")
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	tx, err := w.mailbox.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	first := insert(t, tx, flop(2, 1, "STND", "first"))
	w.put(t, flop(3, 1, "STND", "second"))
	eventually(t, 10*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM inbox_hole WHERE first_id = $1", first); n != 1 {
			return fmt.Errorf("the hole is not known")
		}
		return nil
	})
	require.NoError(t, tx.Commit())
	w.settled(t, 3, 20*time.Second)
	require.Equal(t, "second", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"))
	require.Equal(t, int64(3), w.number(t, "SELECT state_version FROM flight_schd WHERE flid = 1"))
}

// Each server away for 20 s: everything catches up, nothing is DEAD, no attempt is spent (design §3).
func TestOutages(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(w *world, off bool){
		"postgres": func(w *world, off bool) { w.viaPG.set(off) },
		"mailbox":  func(w *world, off bool) { w.viaMailbox.set(off) },
		"kafka":    func(w *world, off bool) { w.cutKafka(off) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(t, "a")
			w.put(t, schedule(1, 1, 10))
			w.settled(t, 1, 30*time.Second)
			back := time.NewTimer(20 * time.Second)
			cut(w, true)
			n := 1
			for away := true; away; n++ {
				w.put(t, flop(1+n, 1+n%10, "STND", strconv.Itoa(n)))
				select {
				case <-back.C:
					away = false
				case <-time.After(100 * time.Millisecond):
				}
			}
			cut(w, false)
			w.settled(t, n, 60*time.Second)
			require.Equal(t, map[string]int{"SUCCEEDED": n}, w.states(t))
			require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state"))
			require.Zero(t, w.number(t, "SELECT count(*) FROM msg_event WHERE state = 'DEAD' OR attempts > 0"))
			w.requireInOrder(t, "msg", n-1+10)
		})
	}
}

// Bad input: MALFORMED is DEAD at once, an unknown kind is tried and then EXHAUSTED with its root class; both are marked and
// what follows flows (design §3).
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "a", "MSGX_PIPELINE_BACKOFF=50ms")
	w.put(t, schedule(1, 1, 1))
	broken := w.put(t, "<MSG><META>")
	unknown := w.put(t, envelope(3, "FLOP", "XXXX", "<FLOP><FLID>1</FLID></FLOP>"))
	protocol := w.put(t, flop(4, 1, "MAXP", "many"))
	ignored := w.put(t, envelope(5, "LDM", "NONE", "<LDM/>"))
	again := w.put(t, schedule(1, 1, 1))
	nul := w.put(t, "<MSG>\x00</MSG>")
	w.put(t, flop(6, 1, "STND", "after"))
	w.settled(t, 8, 30*time.Second)
	for id, want := range map[int64]string{
		broken:   "DEAD MALFORMED MALFORMED ",
		unknown:  "DEAD EXHAUSTED UNSUPPORTED ",
		protocol: "DEAD PROTOCOL PROTOCOL ",
		ignored:  "SKIPPED   ignored:LDM-*",
		again:    "SKIPPED   duplicate-of:1",
		nul:      "DEAD MALFORMED MALFORMED ",
	} {
		require.Equal(t, want, w.text(t,
			"SELECT concat_ws(' ', state, coalesce(error_class, ''), coalesce(root_error_class, ''), coalesce(skip_reason, '')) FROM proc_state WHERE msg_id = $1", id))
	}
	require.Equal(t, int64(5), w.number(t, "SELECT attempts FROM proc_state WHERE msg_id = $1", unknown))
	require.Equal(t, "after", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"))
}

// A message that kills the process is DEAD after max-attempts over restarts, and takes nobody with it (O5, K23).
func TestK23_MessageThatKillsTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(t, schedule(1, 1, 1))
	w.put(t, flop(2, 1, "STND", "before"))
	poison := w.put(t, flop(3, 1, "STND", "poison"))
	w.put(t, flop(4, 1, "STND", "after"))
	env := []string{fmt.Sprintf("MSGX_FAULT_EXIT_ON=%d", poison), "MSGX_PIPELINE_MAX_ATTEMPTS=2"}
	for range 2 {
		require.Equal(t, 137, w.start(t, "doomed", env...).exit(60*time.Second))
	}
	w.start(t, "last", env...)
	w.settled(t, 4, 60*time.Second)
	require.Equal(t, map[string]int{"SUCCEEDED": 3, "DEAD": 1}, w.states(t))
	require.Equal(t, "DEAD EXHAUSTED 2", w.text(t, "SELECT concat_ws(' ', state, error_class, attempts) FROM proc_state WHERE msg_id = $1", poison))
	require.Equal(t, "2 DEAD", w.text(t, "SELECT string_agg(concat_ws(' ', f->>'attempt', f->>'state'), ', ') FROM proc_state, jsonb_array_elements(failures) f WHERE msg_id = $1", poison),
		"its story: the first try has no result")
}

// A message that fails holds the line: effects come out 1, 2, 3 with two pods (K01).
func TestK01_FailedMessageHoldsTheLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := []string{"MSGX_FAULT_INFRA_ON=2:2", "MSGX_PIPELINE_BACKOFF=300ms"}
	w.start(t, "a", env...)
	w.start(t, "b", env...)
	w.put(t, schedule(1, 1, 1))
	for i := range 20 {
		w.put(t, flop(2+i, 1, "STND", strconv.Itoa(i)))
	}
	w.settled(t, 21, 40*time.Second)
	require.Equal(t, int64(3), w.number(t, "SELECT attempts FROM proc_state WHERE msg_id = 2"))
	require.Equal(t, "1 INFRA, 2 INFRA", w.text(t, "SELECT string_agg(concat_ws(' ', f->>'attempt', f->>'class'), ', ') FROM proc_state, jsonb_array_elements(failures) f WHERE msg_id = $1", 2))
	require.Zero(t, w.number(t, "SELECT count(*) FROM proc_state WHERE msg_id <> 2 AND failures IS NOT NULL"))
	require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state WHERE msg_id <> 2"), "those behind were not tried")
	var got []string
	for _, r := range w.sorted(t, "msg")[1:] {
		var e struct{ Fields struct{ Stnd string } }
		require.NoError(t, json.Unmarshal(r.Value, &e))
		got = append(got, e.Fields.Stnd)
	}
	for i, s := range got {
		require.Equal(t, strconv.Itoa(i), s)
	}
	require.Len(t, got, 20)
}

// sorted gives the records of a topic by event id.
func (w *world) sorted(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	all := w.read(t, topic)
	slices.SortStableFunc(all, func(a, b *kgo.Record) int {
		x, _ := strconv.Atoi(header(a, "event-id"))
		y, _ := strconv.Atoi(header(b, "event-id"))
		return cmp.Compare(x, y)
	})
	return all
}

// SIGTERM drains and ends with 0; the next pod continues at once and no attempt was spent (K05).
func TestK05_SIGTERM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start(t, "a")
	w.put(t, schedule(1, 1, 10))
	w.settled(t, 1, 30*time.Second)
	for i := range 300 {
		w.put(t, flop(2+i, 1+i%10, "STND", strconv.Itoa(i)))
		if i == 150 {
			a.signal(syscall.SIGTERM)
		}
	}
	require.Zero(t, a.exit(30*time.Second))
	w.start(t, "b")
	w.settled(t, 301, 30*time.Second)
	require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state"))
	w.requireInOrder(t, "msg", 310)
}

// A wrong configuration stops the start with every problem named.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	w := &world{}
	p := w.command(t, "bad", []string{"serve"},
		"MSGX_PIPELINE_MAX_ATTEMPTS=0", "MSGX_PIPELINE_POLL_INTERVAL=soon", "MSGX_PIPLINE_BATCH=1", "MSGX_MODE=half")
	require.Equal(t, 1, p.exit(20*time.Second))
	for _, problem := range []string{"pg.dsn", "mailbox.dsn", "kafka.brokers", "pipeline.max-attempts", "pipeline.poll-interval", "MSGX_PIPLINE_BATCH", "mode"} {
		require.Contains(t, p.log.String(), problem)
	}
}

// No test or demo server is in the production binary.
func TestProductionImports(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "msgexchange").Output()
	require.NoError(t, err)
	for _, never := range []string{"testify", "franz-go", "go-mysql-server", "kfake", "rapid", "goleak", "pgtestdb", "msgexchange/db/dbtest", "msgexchange/db/dbserver"} {
		require.NotContains(t, string(out), never)
	}
}
