package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// TestRun reads what the outbox makes of events from a broker: a change is printed once though it is there twice, an older
// state is not taken, and a flight that is gone is not counted.
func TestRun(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "msg", "schd"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	event := func(target outbox.Target, id, flid, version int64, typ outbox.Type) *kgo.Record {
		e := outbox.Event{
			ID: id, Target: target, Message: message.Position{ID: id}, FLID: flid, PartitionKey: strconv.FormatInt(flid, 10), Type: typ, StateVersion: version,
		}
		if typ == outbox.Upsert {
			e.Payload = fmt.Appendf(nil, `{"eventId":%d}`, id)
		}
		sent := e.Record()
		topic := map[outbox.Target]string{outbox.Msg: "msg", outbox.Schd: "schd"}[target]
		r := &kgo.Record{Topic: topic, Key: []byte(sent.Key), Value: sent.Value}
		for _, h := range sent.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
		}
		return r
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer cl.Close()
	require.NoError(t, cl.ProduceSync(t.Context(),
		event(outbox.Msg, 1, 15, 1, outbox.Upsert), event(outbox.Msg, 1, 15, 1, outbox.Upsert), event(outbox.Msg, 3, 15, 2, outbox.Upsert),
		event(outbox.Schd, 2, 15, 1, outbox.Upsert), event(outbox.Schd, 4, 16, 1, outbox.Upsert), event(outbox.Schd, 6, 16, 2, outbox.Tombstone),
		event(outbox.Schd, 5, 16, 1, outbox.Upsert),
	).FirstErr())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c.ListenAddrs(), out) }()
	var changes []string
	for in, last := bufio.NewScanner(said), ""; (len(changes) < 2 || last != "1 flights") && in.Scan(); {
		if last = in.Text(); strings.HasPrefix(last, "{") {
			changes = append(changes, last)
		}
	}
	require.Equal(t, []string{`{"eventId":1}`, `{"eventId":3}`}, changes)
	cancel()
	go func() { _, _ = io.Copy(io.Discard, said) }()
	require.NoError(t, <-ended)
}
