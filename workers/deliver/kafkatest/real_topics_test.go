//go:build kafka

package kafkatest_test

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/kafka"
)

// partitionsAdded checks that nothing is lost, repeated or out of order in any partition, old or new.
func partitionsAdded(t *testing.T, brokers []string) {
	topic := newTopic()
	b := benchOf(t, brokers, topic)
	seat := new(kafkatest.Chair).Seat()
	kafkatest.Deliver(t, b.Kafka, seat, kafkatest.Records(1, 300))
	grow := kmsg.NewPtrCreatePartitionsRequest()
	more := kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = topic, partitions+4
	grow.Topics, grow.TimeoutMillis = append(grow.Topics, more), 10_000
	r, err := grow.RequestWith(t.Context(), client(t, brokers))
	require.NoError(t, err)
	require.Zero(t, r.Topics[0].ErrorCode)
	kafkatest.Deliver(t, b.Kafka, seat, kafkatest.Records(301, 100))
	require.Eventually(t, func() bool { return b.Check(t.Context()) == nil }, time.Minute, 100*time.Millisecond)
	kafkatest.Deliver(t, b.Kafka, seat, kafkatest.Records(401, 300))
	require.Zero(t, kafkatest.RequireFirstAppearances(t, b, 700))
}

// madeAnew deletes the topic between two batches; it is made again because we may, and goes on from there.
func madeAnew(t *testing.T, brokers []string) {
	topic := newTopic()
	b := benchOf(t, brokers, topic)
	seat := new(kafkatest.Chair).Seat()
	kafkatest.Deliver(t, b.Kafka, seat, kafkatest.Records(1, 300))
	_, err := b.Kafka.Tail(t.Context(), 100)
	require.NoError(t, err)
	drop := kmsg.NewPtrDeleteTopicsRequest()
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = &topic
	drop.TopicNames, drop.Topics, drop.TimeoutMillis = []string{topic}, append(drop.Topics, one), 10_000
	r, err := drop.RequestWith(t.Context(), client(t, brokers))
	require.NoError(t, err)
	require.Zero(t, r.Topics[0].ErrorCode)
	for _, r := range b.Kafka.Send(t.Context(), seat, kafkatest.Records(301, 50)) {
		require.NotContains(t, []outbox.Fate{outbox.Refused, outbox.TooLarge}, r.Fate)
	}
	require.Eventually(t, func() bool { return b.Check(t.Context()) == nil }, time.Minute, 100*time.Millisecond)
	kafkatest.Resume(t, b.Kafka, seat, kafkatest.Records(301, 100))
	require.Zero(t, kafkatest.RequireFirstAppearances(t, b, 100))
}

// readers runs both examples of docs/examples on real topics, that of states made by us, and sees what they print.
func readers(t *testing.T, s *server, jars string) {
	cfg := kafka.Defaults()
	cfg.Brokers, cfg.CreateTopics = []string{s.Addr}, true
	seat := new(kafkatest.Chair).Seat()
	for target, topic := range map[outbox.Target]string{outbox.Msg: "msg", outbox.Schd: "schd"} {
		p := producer(t, cfg, topic)
		ready(t, p)
		kafkatest.Deliver(t, p, seat, []outbox.Record{event(target, 1, 15, 1), event(target, 3, 15, 2), event(target, 5, 16, 1)})
	}
	require.Equal(t, "compact", cleanupPolicy(t, s, "schd"))
	program := filepath.Join(t.TempDir(), "consumer")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "msgexchange/docs/examples/consumer").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, cmd := range map[string][]string{
		"Go":   {program, s.Addr},
		"Java": {"java", "-cp", jars + "/*", "../../../docs/examples/consumer-java/FlightConsumer.java", s.Addr},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			reader := exec.CommandContext(ctx, cmd[0], cmd[1:]...)
			said, err := reader.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, reader.Start())
			changes, last := map[string]bool{}, ""
			for in := bufio.NewScanner(said); (len(changes) < 3 || last != "2 flights") && in.Scan(); {
				if last = in.Text(); strings.HasPrefix(last, "{") {
					require.False(t, changes[last], "twice: %s", last)
					changes[last] = true
				}
			}
			require.Len(t, changes, 3)
			require.Equal(t, "2 flights", last)
			cancel()
			_ = reader.Wait() // ended by us
		})
	}
}

func event(target outbox.Target, id, flid, version int64) outbox.Record {
	return outbox.Event{
		Target: target, Message: message.Position{ID: id}, FLID: flid, PartitionKey: strconv.FormatInt(flid, 10), Type: outbox.Upsert, StateVersion: version, Payload: []byte(`{"flid":15}`),
	}.WithID(id).Record()
}

func cleanupPolicy(t *testing.T, s *server, topic string) string {
	t.Helper()
	ask := kmsg.NewPtrDescribeConfigsRequest()
	one := kmsg.NewDescribeConfigsRequestResource()
	one.ResourceType, one.ResourceName, one.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{"cleanup.policy"}
	ask.Resources = append(ask.Resources, one)
	r, err := ask.RequestWith(t.Context(), client(t, []string{s.Addr}))
	require.NoError(t, err)
	require.NotEmpty(t, r.Resources[0].Configs)
	return *r.Resources[0].Configs[0].Value
}
