package kafkatest_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/kafka"
)

func TestMemory(t *testing.T) {
	kafkatest.Run(t, func(*testing.T) kafkatest.Bench {
		topic := &kafkatest.Topic{}
		topic.Judge(func(r outbox.Record) outbox.Fate {
			if string(r.Value) == "huge" {
				return outbox.TooLarge
			}
			return outbox.Acked
		})
		return kafkatest.Bench{
			Kafka: topic, Check: topic.Check, Away: topic.Away, Another: func(*testing.T) deliver.Kafka { return topic }, TooLarge: outbox.Record{Value: []byte("huge")},
			Records: func(*testing.T) map[int32][]outbox.Record { return topic.Records() },
		}
	})
}

const partitions = 6

func TestProducer(t *testing.T) {
	kafkatest.Run(t, func(t *testing.T) kafkatest.Bench {
		t.Helper()
		const topic = "msg"
		c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(partitions, topic))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		cfg := kafka.Defaults()
		cfg.Brokers, cfg.RequestTimeout, cfg.SendTimeout = c.ListenAddrs(), 300*time.Millisecond, time.Second
		var away *kfake.FaultHandle
		p := producer(t, cfg, topic)
		return kafkatest.Bench{
			Kafka: p, Check: p.Check, TooLarge: tooLarge(),
			Another: func(t *testing.T) deliver.Kafka { t.Helper(); return producer(t, cfg, topic) },
			Away: func(gone bool) {
				if gone {
					away = c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce, kmsg.Metadata, kmsg.ListOffsets}, Topic: topic, Count: -1})
				} else {
					away.Remove()
				}
			},
			Records: func(t *testing.T) map[int32][]outbox.Record { t.Helper(); return consume(t, cfg.Brokers, topic) },
		}
	})
}

func TestK21_KeysLandWhereJavaPutsThem(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "msg"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	cfg := kafka.Defaults()
	cfg.Brokers = c.ListenAddrs()
	requireJavasPartitions(t, producer(t, cfg, "msg"))
}

// requireJavasPartitions sends 1,000 keys to a topic of six partitions. Where the partitioner of Apache Kafka's own client
// puts each was recorded by testdata/JavaPartitions.java.
func requireJavasPartitions(t *testing.T, p *kafka.Producer) {
	t.Helper()
	recorded, err := os.ReadFile("testdata/java-partitions.txt")
	require.NoError(t, err)
	var recs []outbox.Record
	var want []int32
	for line := range strings.Lines(string(recorded)) {
		place, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(place, 10, 32)
		require.NoError(t, err)
		want = append(want, int32(n))
		recs = append(recs, outbox.Record{EventID: int64(len(want)), Key: key, Value: []byte("{}")})
	}
	require.Len(t, want, 1000)
	for i, r := range p.Send(t.Context(), new(kafkatest.Chair).Seat(), recs) {
		require.NoError(t, r.Err)
		require.Equal(t, want[i], r.Partition, recs[i].Key)
	}
}

func producer(t *testing.T, cfg kafka.Config, topic string) *kafka.Producer {
	t.Helper()
	p, err := kafka.New(cfg, topic, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

func tooLarge() outbox.Record { return outbox.Record{Value: bytes.Repeat([]byte("x"), 2<<20)} }

// partitionsOf asks how many partitions a topic has.
func partitionsOf(t *testing.T, cl *kgo.Client, topic string) int32 {
	t.Helper()
	ask := kmsg.NewPtrMetadataRequest()
	about := kmsg.NewMetadataRequestTopic()
	about.Topic = &topic
	ask.Topics = append(ask.Topics, about)
	r, err := ask.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	require.Zero(t, r.Topics[0].ErrorCode)
	return int32(len(r.Topics[0].Partitions))
}

// consume reads a topic from its start to the end it has now.
func consume(t *testing.T, brokers []string, topic string) map[int32][]outbox.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ask := kmsg.NewPtrListOffsetsRequest()
	ends := kmsg.NewListOffsetsRequestTopic()
	ends.Topic = topic
	for p := range partitionsOf(t, cl, topic) {
		end := kmsg.NewListOffsetsRequestTopicPartition()
		end.Partition, end.Timestamp = p, -1
		ends.Partitions = append(ends.Partitions, end)
	}
	ask.Topics = append(ask.Topics, ends)
	want := int64(0)
	for _, shard := range cl.RequestSharded(ctx, ask) {
		require.NoError(t, shard.Err)
		for _, p := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			want += p.Offset
		}
	}
	out := make(map[int32][]outbox.Record)
	for got := int64(0); got < want; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			rec := outbox.Record{Key: string(r.Key), Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, outbox.Header{Key: h.Key, Value: string(h.Value)})
			}
			rec.EventID, err = strconv.ParseInt(rec.Headers[0].Value, 10, 64)
			require.NoError(t, err)
			out[r.Partition] = append(out[r.Partition], rec)
		})
	}
	return out
}
