package kafkatest_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/jobs/outbox"
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
			Kafka: topic, Away: topic.Away, TooLarge: outbox.Record{Value: []byte("huge")},
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
		return kafkatest.Bench{
			Kafka: producer(t, cfg, topic), TooLarge: tooLarge(),
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

func producer(t *testing.T, cfg kafka.Config, topic string) *kafka.Producer {
	t.Helper()
	p, err := kafka.New(cfg, topic, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

func tooLarge() outbox.Record { return outbox.Record{Value: bytes.Repeat([]byte("x"), 2<<20)} }

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
	for p := range int32(partitions) {
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
