package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver/kafkatest"
)

// deliver sends records until all are acknowledged.
func deliver(t *testing.T, p sender, recs []outbox.Record) {
	t.Helper()
	kafkatest.Deliver(t, p.Producer, p.seat, recs)
}

// requireOrder checks that the first appearances of events 1..n ascend in every partition, and that all are there.
func requireOrder(t *testing.T, c *kfake.Cluster, n int) (repeated int) {
	t.Helper()
	seen := make(map[int64]bool)
	for p, recs := range consume(t, c) {
		last := int64(0)
		for _, r := range recs {
			id := eventID(t, r)
			if seen[id] {
				repeated++
				continue
			}
			seen[id] = true
			require.Greater(t, id, last, "partition %d", p)
			last = id
		}
	}
	require.Len(t, seen, n)
	return repeated
}

func TestK19_OrderSurvivesBrokerFaults(t *testing.T) {
	t.Parallel()
	produce := []kmsg.Key{kmsg.Produce}
	tests := map[string][]kfake.Fault{
		"not leader":          {{Keys: produce, Err: kerr.NotLeaderForPartition, Count: 5}},
		"timed out, kept":     {{Keys: produce, Err: kerr.RequestTimedOut, Count: 5}},
		"too few replicas":    {{Keys: produce, Err: kerr.NotEnoughReplicasAfterAppend, Count: 3}, {Keys: produce, Err: kerr.NotEnoughReplicas, Count: 3}},
		"out of order":        {{Keys: produce, Err: kerr.OutOfOrderSequenceNumber, Count: 3, Partitions: []int32{0, 3}}},
		"unknown producer":    {{Keys: produce, Err: kerr.UnknownProducerID, Count: 2}},
		"old epoch":           {{Keys: produce, Err: kerr.InvalidProducerEpoch, Count: 2, Partitions: []int32{1}}},
		"storage, unknown":    {{Keys: produce, Err: kerr.KafkaStorageError, Count: 2}, {Keys: produce, Err: kerr.UnknownServerError, Count: 2}},
		"no rights":           {{Keys: produce, Err: kerr.TopicAuthorizationFailed, Count: 4}},
		"no identity":         {{Keys: produce, Err: kerr.UnknownProducerID}, {Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.CoordinatorLoadInProgress, Count: 3}},
		"metadata leaderless": {{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Err: kerr.LeaderNotAvailable, Count: 4}, {Keys: produce, Err: kerr.NotLeaderForPartition, Count: 5}},
	}
	for name, faults := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			deliver(t, p, events(1, 50))
			h := c.Fault(faults...)
			deliver(t, p, events(51, 450))
			require.Positive(t, h.Hits())
			requireOrder(t, c, 500)
		})
	}
}

func TestK19_OrderSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	var n atomic.Int32
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch i := n.Add(1); {
		case i%5 == 0:
			return nil, errors.New("cut before the work"), true
		case i%7 == 0:
			c.ShufflePartitionLeaders()
		}
		return nil, nil, false
	})
	deliver(t, p, events(1, 2000))
	require.Zero(t, requireOrder(t, c, 2000))
}

func TestK19_OrderSurvivesARestart(t *testing.T) {
	t.Parallel()
	data := kfake.DataDir(t.TempDir())
	c := cluster(t, kfake.NumBrokers(1), data)
	port := portOf(t, c)
	p := producer(t, config(c))
	deliver(t, p, events(1, 300))
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	results := p.Send(ctx, events(301, 10))
	require.Equal(t, slices.Repeat([]outbox.Fate{outbox.Waiting}, 10), fates(results))
	require.Equal(t, fault.Outage, fault.Of(results[0].Err))
	require.Error(t, p.Check(t.Context()))
	c = cluster(t, kfake.NumBrokers(1), kfake.Ports(port), data)
	deliver(t, p, events(301, 300))
	require.NoError(t, p.Check(t.Context()))
	requireOrder(t, c, 600)
}

func portOf(t *testing.T, c *kfake.Cluster) int {
	t.Helper()
	_, text, err := net.SplitHostPort(c.ListenAddrs()[0])
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return port
}

// A batch given up in doubt must not be appended behind its successors when the broker wakes up (design §7).
func TestBatchGivenUpIsFencedOff(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.NumBrokers(1))
	p := producer(t, config(c))
	old := outbox.Record{EventID: 2, Key: "15", Value: []byte("old"), Headers: []outbox.Header{{Key: "event-id", Value: "2"}}}
	deliver(t, p, []outbox.Record{{EventID: 1, Key: "15", Headers: []outbox.Header{{Key: "event-id", Value: "1"}}}})

	wake, slept := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		if first.CompareAndSwap(false, true) {
			c.SleepControl(func() { <-wake })
			close(slept)
		}
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Equal(t, outbox.Waiting, p.Send(ctx, []outbox.Record{old})[0].Fate)
	newer := old
	newer.EventID, newer.Value, newer.Headers = 3, []byte("new"), []outbox.Header{{Key: "event-id", Value: "3"}}
	deliver(t, p, []outbox.Record{newer})
	close(wake)
	<-slept
	deliver(t, p, []outbox.Record{{EventID: 4, Key: "15", Headers: []outbox.Header{{Key: "event-id", Value: "4"}}}})
	require.Equal(t, []int64{1, 3, 4}, ids(t, c))
}

// A batch given up in doubt and sent again is in the topic once.
func TestBatchGivenUpIsNotRepeated(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	deliver(t, p, events(1, 50))
	var lost atomic.Int32
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1, When: func(kmsg.Request) bool { return lost.Load() == 0 }})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for _, f := range fates(p.Send(ctx, events(51, 50))) {
		require.Equal(t, outbox.Waiting, f)
	}
	lost.Store(1)
	deliver(t, p, events(51, 80))
	require.Zero(t, requireOrder(t, c, 130))
}

func TestK20_FrozenBroker(t *testing.T) { // not parallel: it counts goroutines
	c := cluster(t)
	cfg := config(c)
	cfg.RequestTimeout, cfg.SendTimeout = 100*time.Millisecond, 150*time.Millisecond
	p := producer(t, cfg)
	deliver(t, p, events(1, 50))
	var frozen atomic.Bool
	frozen.Store(true)
	c.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, frozen.Load()
	})
	before := 0
	for i := range 20 {
		start := time.Now()
		results := p.Send(t.Context(), events(51, 50))
		require.Less(t, time.Since(start), cfg.SendTimeout+time.Second)
		require.Equal(t, fault.Outage, fault.Of(results[0].Err))
		ctx, cancel := context.WithTimeout(t.Context(), cfg.SendTimeout)
		require.Equal(t, fault.Outage, fault.Of(p.Check(ctx)))
		_, err := p.Tail(ctx, 10)
		require.Equal(t, fault.Outage, fault.Of(err))
		cancel()
		if i == 1 {
			before = goroutines()
		}
	}
	require.LessOrEqual(t, goroutines(), before+5)
	frozen.Store(false)
	deliver(t, p, events(51, 50))
	requireOrder(t, c, 100)
}

func TestOversizeRecordIsFoundAndNeighboursDelivered(t *testing.T) {
	t.Parallel()
	const topicTakes = 4096
	c := cluster(t)
	require.NoError(t, c.DeleteTopic(topic))
	require.NoError(t, c.CreateTopic(topic, partitions, map[string]string{"max.message.bytes": fmt.Sprint(topicTakes)}))
	p := producer(t, config(c))
	recs := events(1, 200)
	for i := range recs {
		recs[i].Value = bytes.Repeat([]byte("x"), topicTakes/8)
		recs[i].Key = "15"
	}
	recs[120].Value = bytes.Repeat([]byte("y"), topicTakes)
	results := p.Send(t.Context(), recs)
	for i, r := range results {
		switch {
		case i < 120:
			require.Equal(t, outbox.Acked, r.Fate, "%d: %v", i, r.Err)
		case i == 120:
			require.Equal(t, outbox.TooLarge, r.Fate)
			require.Equal(t, fault.Refused, fault.Of(r.Err))
		default:
			require.Equal(t, outbox.Waiting, r.Fate)
			require.Equal(t, fault.Outage, fault.Of(r.Err))
		}
	}
	deliver(t, p, recs[121:])
	require.Len(t, ids(t, c), 199)
}

func TestRefusedContentIsFound(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	recs := events(1, 300)
	for i := range recs {
		recs[i].Key = "15"
	}
	recs[77].Value = []byte("poison")
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord, Count: -1, When: func(r kmsg.Request) bool {
		return bytes.Contains(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records, []byte("poison"))
	}})
	got := fates(p.Send(t.Context(), recs))
	require.Equal(t, slices.Repeat([]outbox.Fate{outbox.Acked}, 77), got[:77])
	require.Equal(t, outbox.Refused, got[77])
	require.Equal(t, slices.Repeat([]outbox.Fate{outbox.Waiting}, 222), got[78:])
}

// goroutines counts those of the client side; the cluster in this process keeps some for connections it froze.
func goroutines() (n int) {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "sarama.") || strings.Contains(g, "workers/kafka.") {
			n++
		}
	}
	return n
}

// A partition without a leader keeps what is for it waiting, and nothing else, and does not use up the time of a Send.
func TestStuckPartitionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	const stuck = 2
	c := cluster(t)
	cfg := config(c)
	cfg.SendTimeout = 5 * time.Minute // more than this test may take
	p := producer(t, cfg)
	h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.LeaderNotAvailable, Count: -1, Partitions: []int32{stuck}})
	recs := events(1, 200)
	var again []outbox.Record
	for i, r := range p.Send(t.Context(), recs) {
		if r.Partition != stuck {
			require.Equal(t, outbox.Acked, r.Fate)
			continue
		}
		require.Equal(t, fault.Outage, fault.Of(r.Err))
		again = append(again, recs[i])
	}
	require.NotEmpty(t, again)
	h.Remove()
	deliver(t, p, again)
	require.Zero(t, requireOrder(t, c, 200))
}

// Nothing goes to a partition of which it is not known what is there already; the others are served.
func TestPartitionThatCannotBeReadGetsNothing(t *testing.T) {
	t.Parallel()
	const blind = 1
	c, p := setup(t)
	deliver(t, p, events(1, 100))
	h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.LeaderNotAvailable, Count: -1, Partitions: []int32{blind}})
	tail, err := p.Tail(t.Context(), 100)
	require.NoError(t, err)
	require.NotEmpty(t, tail)
	require.Less(t, len(tail), 100)
	recs := events(101, 100)
	var again []outbox.Record
	for i, r := range p.Send(t.Context(), recs) {
		if r.Partition != blind {
			require.Equal(t, outbox.Acked, r.Fate)
			continue
		}
		require.ErrorContains(t, r.Err, "the end of partition 1 is not known")
		again = append(again, recs[i])
	}
	require.NotEmpty(t, again)
	h.Remove()
	_, err = p.Tail(t.Context(), 100)
	require.NoError(t, err)
	deliver(t, p, again)
	require.Zero(t, requireOrder(t, c, 200))
}
