package systemtest

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// appendedUnmarked runs a pod until the record of an event is in topic msg, and kills it before it can tell PostgreSQL:
// between the broker's acknowledgement and our commit. It gives the id of the event.
func (w *world) appendedUnmarked(t *testing.T) (id string) {
	t.Helper()
	first := w.start(t, "first")
	w.put(t, schedule(1, 100, 3))
	w.settled(t, 1, 60*time.Second)

	var frozen atomic.Bool
	thaw := make(chan func(), 1)
	w.kafka.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		if r.(*kmsg.ProduceRequest).Topics[0].Topic == "msg" && frozen.CompareAndSwap(false, true) {
			thaw <- w.viaPG.freeze(t) // from before the append on nothing reaches PostgreSQL
		}
		return nil, nil, false
	})
	change := strconv.FormatInt(w.put(t, flop(2, 100, "STND", "203")), 10)
	goOn := <-thaw
	eventually(t, 30*time.Second, func() error {
		for _, r := range w.read(t, "msg") {
			if header(r, "message-id") == change {
				id = header(r, "event-id")
				return nil
			}
		}
		return errors.New("not appended yet")
	})
	first.kill()
	goOn()
	require.Equal(t, "PENDING", w.text(t, "SELECT state FROM msg_event WHERE event_id = $1::text::bigint", id))
	return id
}

// withID gives the records of an event.
func (w *world) withID(t *testing.T, id string) []*kgo.Record {
	t.Helper()
	return slices.DeleteFunc(w.read(t, "msg"), func(r *kgo.Record) bool { return header(r, "event-id") != id })
}

func TestK22_TakeoverFindsWhatIsInTheTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.appendedUnmarked(t)
	w.start(t, "second")
	w.settled(t, 2, 60*time.Second)
	require.Len(t, w.withID(t, id), 1)
	require.Equal(t, int64(1), w.number(t, "SELECT count(*) FROM msg_event WHERE event_id = $1::text::bigint AND kafka_offset IS NOT NULL", id))
}

// Where the tail may not be read the record comes again, and can be known by its id.
func TestK22_TakeoverWithoutTheTailRepeatsTheSameEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.appendedUnmarked(t)
	h := w.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	second := w.start(t, "second")
	w.settled(t, 2, 60*time.Second)
	h.Remove()
	twice := w.withID(t, id)
	require.Len(t, twice, 2)
	require.Empty(t, cmp.Diff(string(twice[0].Value), string(twice[1].Value)))
	require.Empty(t, cmp.Diff(twice[0].Headers, twice[1].Headers))
	require.Contains(t, second.log.String(), "topic not readable")
}

// A click in River UI stops a role for all pods. It says so where operators look first, and all goes on once it is resumed.
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t))
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	click := func(what string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.address()+"/riverui/api/queues/head/"+what, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+operatorToken)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	// A drain that is open goes on: it is to be closed first.
	eventually(t, 30*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM pipeline_lease WHERE role = 'head' AND holder <> ''"); n > 0 {
			return errors.New("the head is still open")
		}
		return nil
	})
	click("pause")
	w.put(t, flop(2, 1, "STND", "7"))
	eventually(t, 30*time.Second, func() error {
		_, ready := get(t, p.address()+"/readyz")
		if !strings.Contains(ready, "paused in River UI, resume it there: queue head") || !strings.Contains(p.log.String(), `"msg":"queue paused"`) {
			return errors.New(ready)
		}
		return nil
	})
	require.Equal(t, int64(1), w.number(t, "SELECT count(*) FROM proc_state WHERE finished_at IS NULL"))
	click("resume")
	w.settled(t, 2, 30*time.Second)
}
