package deliver_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/db"
	"msgexchange/jobs"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
	"msgexchange/workers/kafka"
)

const brokerTopic = "topic"

// onBroker gives the rig a producer of a broker in this process in place of the topic in memory.
func (r *rig) onBroker(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c := brokerOf(t, opts...)
	cfg := kafka.Defaults()
	cfg.Brokers, cfg.RequestTimeout, cfg.SendTimeout = c.ListenAddrs(), time.Second, 3*time.Second
	p, err := kafka.New(cfg, brokerTopic, r.deps.Log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	r.deps.Kafka = p
	return c
}

func brokerOf(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(4, brokerTopic)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// drained steps, passing the time that the role asks for, until nothing waits.
func (r *rig) drained(t *testing.T, role drain.Role) {
	t.Helper()
	require.Eventually(t, func() bool {
		next := r.step(t, role)
		r.pass(next.Wait)
		waiting, err := role.Pending(t.Context(), r.pool)
		require.NoError(t, err)
		return !waiting
	}, time.Minute, time.Millisecond)
}

// onTopic reads the event ids of a broker's topic, by partition.
func onTopic(t *testing.T, c *kfake.Cluster) map[int32][]int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(brokerTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	want := int64(0)
	for _, p := range c.PartitionInfos(brokerTopic) {
		want += p.HighWatermark
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	all := make(map[int32][]int64)
	for got := int64(0); got < want; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			id, err := strconv.ParseInt(string(r.Headers[0].Value), 10, 64)
			require.NoError(t, err)
			all[r.Partition] = append(all[r.Partition], id)
		})
	}
	return all
}

// A script of errors and a restart: 1 … n in every partition, each once, and nothing dead or charged (K19).
func TestK19_NothingIsDead(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	data := kfake.DataDir(t.TempDir())
	c := r.onBroker(t, data)
	m := r.msg()
	next := int64(0)
	more := func(n int64) {
		flids := make([]int64, n)
		for i := range flids {
			flids[i] = (next + int64(i)) % 23
		}
		next += n
		r.insert(t, outbox.Msg, flids...)
	}
	produce := []kmsg.Key{kmsg.Produce}
	more(100)
	r.drained(t, m)
	for _, code := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID,
		kerr.InvalidProducerEpoch, kerr.CorruptMessage, kerr.InvalidTimestamp, kerr.UnknownServerError, kerr.TopicAuthorizationFailed,
	} {
		h := c.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicasAfterAppend}, kfake.Fault{Keys: produce, Err: code, Count: 3})
		more(100)
		r.drained(t, m)
		require.Positive(t, h.Hits(), code.Message)
		h.Remove()
	}
	_, port, err := net.SplitHostPort(c.ListenAddrs()[0])
	require.NoError(t, err)
	again, err := strconv.Atoi(port)
	require.NoError(t, err)
	c.Close()
	more(100)
	for range 2 {
		next := r.step(t, m)
		require.Positive(t, next.Wait)
		r.pass(next.Wait)
	}
	c = brokerOf(t, data, kfake.Ports(again))
	r.drained(t, m)
	require.Equal(t, repeat("SENT 0", int(next)), r.column(t, "state || ' ' || attempts"))
	sum := 0
	for p, ids := range onTopic(t, c) {
		require.True(t, slices.IsSorted(ids), "partition %d: %v", p, ids)
		require.Len(t, slices.Compact(slices.Clone(ids)), len(ids), "twice in partition %d", p)
		sum += len(ids)
	}
	require.Equal(t, int(next), sum)
}

// A state too large for the topic is dead at once; the flight's next, smaller one goes out and closes it.
func TestOversizeStateIsClosedByASmallerOne(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	c := r.onBroker(t)
	require.NoError(t, c.DeleteTopic(brokerTopic))
	require.NoError(t, c.CreateTopic(brokerTopic, 1, map[string]string{"max.message.bytes": "4096", "cleanup.policy": "compact"}))
	s := r.schd()
	r.insert(t, outbox.Schd, 14, 15, 16)
	_, err := r.pool.Exec(t.Context(), "UPDATE msg_event SET payload = $1 WHERE event_id = 2", fmt.Sprintf("%q", strings.Repeat("x", 8192)))
	require.NoError(t, db.Classify(err))
	r.pass(3 * time.Second)
	r.drained(t, s)
	require.Equal(t, []string{"SENT -", "DEAD TOOLARGE", "SENT -"}, r.column(t, "state || ' ' || coalesce(refusal, '-')"))
	r.insert(t, outbox.Schd, 15)
	r.pass(3 * time.Second)
	r.drained(t, s)
	require.Equal(t, []string{"SENT -", "SENT by 4", "SENT -", "SENT -"}, r.column(t, "state || coalesce(' by ' || superseded_by, ' -')"))
	require.Equal(t, map[int32][]int64{0: {1, 3, 4}}, onTopic(t, c))
}

// Brokers that give no producer identity: nothing is sent, nobody is charged, and it goes on alone.
func TestRefusedIdentitySpendsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	c := r.onBroker(t)
	h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	r.insert(t, outbox.Msg, 1, 2, 3)
	m := r.msg()
	require.Positive(t, r.step(t, m).Wait)
	require.Equal(t, repeat("PENDING 0", 3), r.column(t, "state || ' ' || attempts"))
	h.Remove()
	r.drained(t, m)
	require.Equal(t, repeat("SENT 0", 3), r.column(t, "state || ' ' || attempts"))
}
