package kafka_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/kafka"
)

const (
	topic      = "msg"
	partitions = 6
)

// setup starts a cluster with the topic and makes a producer for it with short times.
func setup(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, sender) {
	t.Helper()
	c := cluster(t, opts...)
	return c, producer(t, config(c))
}

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(partitions, topic)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func config(c *kfake.Cluster) kafka.Config {
	cfg := kafka.Defaults()
	cfg.Brokers = c.ListenAddrs()
	cfg.RequestTimeout, cfg.SendTimeout = time.Second, 10*time.Second
	return cfg
}

// sender is a producer with the one seat there is.
type sender struct {
	*kafka.Producer
	seat kafka.Seat
}

func (s sender) Send(ctx context.Context, recs []outbox.Record) []outbox.Result {
	return s.Producer.Send(ctx, s.seat, recs)
}

func producer(t *testing.T, cfg kafka.Config) sender {
	t.Helper()
	require.NoError(t, cfg.Validate())
	p, err := kafka.New(cfg, topic, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, p.Close(ctx))
	})
	return sender{p, new(kafkatest.Chair).Seat()}
}

// events makes n records over a few keys; event ids count from first.
func events(first, n int) []outbox.Record {
	recs := make([]outbox.Record, n)
	for i := range recs {
		id := int64(first + i)
		recs[i] = outbox.Record{
			EventID: id, Key: fmt.Sprint(1000 + id%17), Value: fmt.Appendf(nil, `{"eventId":%d}`, id),
			Headers: []outbox.Header{{Key: "event-id", Value: fmt.Sprint(id)}},
		}
	}
	return recs
}

// consume reads everything in the topic, by partition.
func consume(t *testing.T, c *kfake.Cluster) map[int32][]*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	want := 0
	for _, p := range c.PartitionInfos(topic) {
		want += int(p.HighWatermark)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out := make(map[int32][]*kgo.Record)
	for got := 0; got < want; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "reading %d of %d records back", got, want)
		fetches.EachRecord(func(r *kgo.Record) { out[r.Partition] = append(out[r.Partition], r); got++ })
	}
	return out
}

func TestSendKeepsOrderAndReportsPlaces(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	recs := events(1, 1000)
	results := p.Send(t.Context(), recs)
	got := consume(t, c)
	for i, r := range results {
		require.NoError(t, r.Err)
		require.Equal(t, outbox.Acked, r.Fate)
		rec := got[r.Partition][r.Offset]
		require.Equal(t, string(recs[i].Value), string(rec.Value))
		require.Equal(t, recs[i].Key, string(rec.Key))
		require.Equal(t, "event-id", rec.Headers[0].Key)
	}
}

func TestK21_TombstoneIsNullOnTheWire(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	results := p.Send(t.Context(), []outbox.Record{{EventID: 1, Key: "15"}, {EventID: 2, Key: "15", Value: []byte{}}})
	got := consume(t, c)[results[0].Partition]
	require.Nil(t, got[0].Value, "null")
	require.NotNil(t, got[1].Value, "empty is not null")
}

func TestK21_BlankKeyIsRefused(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	recs := events(1, 3)
	recs[1].Key = " "
	results := p.Send(t.Context(), recs)
	require.Equal(t, []outbox.Fate{outbox.Acked, outbox.Refused, outbox.Acked}, fates(results))
	require.Equal(t, fault.Refused, fault.Of(results[1].Err))
	require.Len(t, ids(t, c), 2)
}

func fates(results []outbox.Result) []outbox.Fate {
	out := make([]outbox.Fate, len(results))
	for i, r := range results {
		out[i] = r.Fate
	}
	return out
}

// ids reads the event ids in the topic, all partitions, each in its order.
func ids(t *testing.T, c *kfake.Cluster) (all []int64) {
	t.Helper()
	for _, recs := range consume(t, c) {
		for _, r := range recs {
			all = append(all, eventID(t, r))
		}
	}
	return all
}

func eventID(t *testing.T, r *kgo.Record) int64 {
	t.Helper()
	id, err := strconv.ParseInt(string(r.Headers[0].Value), 10, 64)
	require.NoError(t, err)
	return id
}
