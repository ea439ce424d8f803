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

func TestProducer(t *testing.T) {
	kafkatest.Run(t, func(t *testing.T) kafkatest.Bench {
		const topic, partitions = "msg", 6
		c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(partitions, topic))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		cfg := kafka.Defaults()
		cfg.Brokers, cfg.RequestTimeout, cfg.SendTimeout = c.ListenAddrs(), 300*time.Millisecond, time.Second
		p, err := kafka.New(cfg, topic, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
		var away *kfake.FaultHandle
		return kafkatest.Bench{
			Kafka: p, TooLarge: outbox.Record{Value: bytes.Repeat([]byte("x"), 2<<20)},
			Away: func(gone bool) {
				if gone {
					away = c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce, kmsg.Metadata, kmsg.ListOffsets}, Topic: topic, Count: -1})
				} else {
					away.Remove()
				}
			},
			Records: func(t *testing.T) map[int32][]outbox.Record { return consume(t, c, topic, partitions) },
		}
	})
}

func consume(t *testing.T, c *kfake.Cluster, topic string, partitions int32) map[int32][]outbox.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	want := 0
	for p := range partitions {
		want += int(c.PartitionInfo(topic, p).HighWatermark)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out := make(map[int32][]outbox.Record)
	for got := 0; got < want; {
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
