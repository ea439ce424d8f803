package systemtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The backlog of each topic in a storm, and of how many flights it is.
const (
	stormChanges = 100_000
	stormStates  = 20_000
	stormFlights = 400
)

// backlog puts events into the outbox, of all flights in turns: msg from 1 on, schd behind them.
func (w *world) backlog(t *testing.T) {
	t.Helper()
	for _, b := range []struct {
		target   string
		after, n int
	}{{"KAFKA:msg", 0, stormChanges}, {"KAFKA:schd", stormChanges, stormStates}} {
		_, err := w.pg.Exec(t.Context(), `
			INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, sndr, payload, received_at, created_at)
			SELECT $2::bigint + n, $1, n, n % $4, (n % $4)::text, 'UPSERT', 1 + n / $4, 'FLOP-PSDT', 'AODB', json_build_object('n', n), now(), now()
			FROM generate_series(1, $3::integer) n`, b.target, b.after, b.n, stormFlights)
		require.NoError(t, err)
	}
	_, err := w.pg.Exec(t.Context(), "SELECT setval('msg_event_event_id_seq', $1)", stormChanges+stormStates)
	require.NoError(t, err)
}

// storm troubles broker and database while a backlog is delivered, until it is calm: of produce requests the answers to
// every 9th are lost, every 11th is cut off before it is read, at every 13th leaders move; the answer to every 30th COMMIT is lost.
func (w *world) storm(t *testing.T) (calm func()) {
	t.Helper()
	var batches atomic.Int64
	var over atomic.Bool
	w.kafka.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		switch n := batches.Add(1); {
		case over.Load():
		case n%11 == 0:
			return nil, errors.New("cut before the work"), true
		case n%13 == 0:
			w.kafka.ShufflePartitionLeaders()
		}
		return nil, nil, false
	})
	w.kafka.Fault(kfake.Fault{ // appended all the same
		Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1,
		When: func(kmsg.Request) bool { return !over.Load() && batches.Load()%9 == 8 },
	})
	w.ear.loseCommits.Store(30)
	return func() {
		over.Store(true)
		w.ear.loseCommits.Store(0)
		t.Logf("%d batches, %d commits unheard", batches.Load(), w.ear.lost.Load())
	}
}

// A backlog of 100,000 changes in a storm, with two pods that are killed in turns, a broker that freezes and a database that
// is cut off: record for record every event of msg is there once and in order; of schd no flight's state goes back, and its
// newest is last (K19, K22).
func TestK22_BacklogInAStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backlog(t)
	calm := w.storm(t)
	const batch = "MSGX_DELIVERY_BATCH=100"
	pods := []*pod{w.start(t, "0", batch), w.start(t, "1", batch)}
	sent := func() int64 { return w.number(t, "SELECT count(*) FROM msg_event WHERE state = 'SENT'") }
	progress := func(share int64) {
		eventually(t, 3*time.Minute, func() error {
			if n := sent(); n < share {
				return fmt.Errorf("%d sent", n)
			}
			return nil
		})
	}
	const steps, all = 5, stormChanges + stormStates
	for i := range int64(steps) {
		progress(1 + i*all/(steps+1))
		switch i {
		case 1:
			thaw := w.kafka.Freeze()
			<-time.After(4 * time.Second) // longer than a request may take
			thaw()
		case 3:
			w.viaPG.set(true)
			<-time.After(time.Second)
			w.viaPG.set(false)
		default:
			dead := int(i) / 2 % 2
			pods[dead].kill()
			pods[dead] = w.start(t, strconv.Itoa(dead), batch)
		}
	}
	calm()
	progress(all)
	require.Zero(t, w.number(t, "SELECT count(*) FROM msg_event WHERE state <> 'SENT' OR attempts > 0 OR last_error IS NOT NULL"))
	w.requireOnce(t)
	w.requireNeverBack(t)
}

// requireOnce reads msg record for record.
func (w *world) requireOnce(t *testing.T) {
	t.Helper()
	seen, last := make(map[int]bool, stormChanges), map[int32]int{}
	for _, r := range w.read(t, "msg") {
		id := eventOf(t, r)
		require.False(t, seen[id], "event %d is there twice, again at %d/%d", id, r.Partition, r.Offset)
		require.Greater(t, id, last[r.Partition], "at %d/%d", r.Partition, r.Offset)
		require.Equal(t, strconv.Itoa(id%stormFlights), string(r.Key))
		require.Equal(t, fmt.Sprintf(`{"n" : %d}`, id), string(r.Value))
		seen[id], last[r.Partition] = true, id
	}
	require.Len(t, seen, stormChanges)
}

// requireNeverBack reads schd record for record.
func (w *world) requireNeverBack(t *testing.T) {
	t.Helper()
	newest := map[string]int{}
	records := w.read(t, "schd")
	for _, r := range records {
		id := eventOf(t, r)
		require.Greater(t, id, newest[string(r.Key)], "flight %s at %d/%d", r.Key, r.Partition, r.Offset)
		newest[string(r.Key)] = id
	}
	require.Len(t, newest, stormFlights)
	for _, id := range newest {
		require.Greater(t, id, stormChanges+stormStates-stormFlights, "the newest of its flight")
	}
	t.Logf("%d records stand for %d states", len(records), stormStates)
}

func eventOf(t *testing.T, r *kgo.Record) int {
	t.Helper()
	id, err := strconv.Atoi(header(r, "event-id"))
	require.NoError(t, err)
	return id
}
