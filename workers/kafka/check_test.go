package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/kafka"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	_, p := setup(t)
	require.NoError(t, p.Check(t.Context()))
}

func TestMissingTopicIsNamedAndNoticedByItself(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	require.NoError(t, c.DeleteTopic(topic))
	p := producer(t, config(c))
	err := p.Check(t.Context())
	require.ErrorContains(t, err, "topic "+topic)
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, outbox.Waiting, p.Send(t.Context(), events(1, 1))[0].Fate)
	require.NoError(t, c.CreateTopic(topic, 3, nil))
	require.NoError(t, p.Check(t.Context()))
	deliver(t, p, events(1, 50))
}

func TestTopicIsMadeWhenConfigured(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	require.NoError(t, c.DeleteTopic(topic))
	cfg := config(c)
	cfg.CreateTopics, cfg.Partitions = true, 4
	p := producer(t, cfg)
	deliver(t, p, events(1, 50))
	require.NoError(t, p.Check(t.Context()))
	require.Len(t, c.PartitionInfos(topic), 4)
}

func TestBrokerWithoutIdempotenceIsRefused(t *testing.T) {
	t.Parallel()
	_, p := setup(t, kfake.MaxVersions(kversion.V0_10_0()))
	err := p.Check(t.Context())
	require.ErrorContains(t, err, "InitProducerId")
	require.Equal(t, fault.Outage, fault.Of(err))
	r := p.Send(t.Context(), events(1, 1))[0]
	require.Equal(t, outbox.Waiting, r.Fate)
	require.ErrorContains(t, r.Err, "InitProducerId")
}

func TestLeaderlessPartitionIsReported(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	require.NoError(t, p.Check(t.Context()))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Err: kerr.LeaderNotAvailable, Count: -1})
	require.ErrorContains(t, p.Check(t.Context()), topic)
}

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "us,er", "pässword"))
			cfg := config(c)
			cfg.SASL = kafka.SASL{Mechanism: mechanism, User: "us,er", Password: "pässword"}
			p := producer(t, cfg)
			require.NoError(t, p.Check(t.Context()))
			require.Equal(t, outbox.Acked, p.Send(t.Context(), events(1, 1))[0].Fate)
			cfg.SASL.Password = "wrong"
			require.Equal(t, fault.Outage, fault.Of(producer(t, cfg).Check(t.Context())))
		})
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	_, p := setup(t)
	empty, err := p.Tail(t.Context(), 10)
	require.NoError(t, err)
	require.Empty(t, empty)
	recs := events(1, 500)
	want := make(map[int64]outbox.Place)
	last := make(map[int32]int64)
	results := p.Send(t.Context(), recs)
	for _, r := range results {
		last[r.Partition] = max(last[r.Partition], r.Offset)
	}
	const n = 7
	for i, r := range results {
		if r.Offset > last[r.Partition]-n {
			want[recs[i].EventID] = outbox.Place{Partition: r.Partition, Offset: r.Offset}
		}
	}
	got, err := p.Tail(t.Context(), n)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
}

// A transaction of somebody else leaves a mark at the end, which no reader is given.
func TestTailThatEndsInAMark(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	deliver(t, p, events(1, 50))
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.TransactionalID("x"))
	require.NoError(t, err)
	defer cl.Close()
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), kgo.StringRecord("strange")).FirstErr())
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	tail, err := p.Tail(t.Context(), 100)
	require.NoError(t, err)
	require.Len(t, tail, 50)
}

func TestTailThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	deliver(t, p, events(1, 50))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	_, err := p.Tail(t.Context(), 1)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	deliver(t, p, events(51, 50))
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	_, p := setup(t)
	deliver(t, p, events(1, 10))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, p.Close(ctx))
	require.Equal(t, outbox.Waiting, p.Send(t.Context(), events(11, 1))[0].Fate)
	require.Error(t, p.Check(t.Context()))
}

func TestConfigListsEveryProblem(t *testing.T) {
	t.Parallel()
	cfg := kafka.Defaults()
	cfg.Brokers = []string{"here"}
	require.ErrorContains(t, cfg.Validate(), `"here" is not host:port`)
	bad := kafka.Config{
		TopicMsg: "a b", TopicSchd: "a b", MsgKey: "x", Replication: -2, SendTimeout: -1,
		TLS: kafka.TLS{CertFile: "x"}, SASL: kafka.SASL{Mechanism: "GSSAPI"},
	}
	err := bad.Validate()
	for _, key := range []string{"brokers", "topic-msg", "topic-schd", "are both", "msg-key", "partitions", "replication", "request-timeout", "send-timeout", "tls", "sasl.mechanism"} {
		require.ErrorContains(t, err, key)
	}
	good := kafka.Defaults()
	good.Brokers = []string{"kafka-1:9092", "[::1]:9092"}
	require.NoError(t, good.Validate())
	good.TLS = kafka.TLS{Enabled: true, CAFile: "/nowhere"}
	_, err = kafka.New(good, "msg", nil)
	require.ErrorContains(t, err, "tls.ca-file")
}
