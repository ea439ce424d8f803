package kafkatest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
)

// Bench is a topic under test, and the means to look into it from the other side and to trouble it.
type Bench struct {
	Kafka   deliver.Kafka
	Records func(t *testing.T) map[int32][]outbox.Record
	Away    func(away bool) // nil: cannot be done
	// TooLarge is a record the topic will not take for its size.
	TooLarge outbox.Record
}

// Run checks that a topic does what workers/deliver relies on. open gives an empty one each time.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, Bench){
		"order and places":                orderAndPlaces,
		"one key, one partition":          oneKeyOnePartition,
		"nothing behind a refused record": nothingBehindRefused,
		"blank key":                       blankKey,
		"tombstone":                       tombstone,
		"tail":                            tail,
		"away and back":                   awayAndBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func orderAndPlaces(t *testing.T, b Bench) {
	t.Helper()
	sent := records(1, 300)
	results := b.Kafka.Send(t.Context(), sent)
	logs := b.Records(t)
	for i, r := range results {
		require.NoError(t, r.Err)
		require.Equal(t, outbox.Acked, r.Fate)
		require.Empty(t, cmp.Diff(sent[i], logs[r.Partition][r.Offset]))
	}
}

func oneKeyOnePartition(t *testing.T, b Bench) {
	t.Helper()
	byKey := make(map[string]int32)
	sent := records(1, 100)
	for i, r := range b.Kafka.Send(t.Context(), sent) {
		p, seen := byKey[sent[i].Key]
		require.True(t, !seen || p == r.Partition)
		byKey[sent[i].Key] = r.Partition
	}
}

func nothingBehindRefused(t *testing.T, b Bench) {
	t.Helper()
	bad := b.TooLarge
	bad.EventID, bad.Key = 2, "15"
	results := b.Kafka.Send(t.Context(), []outbox.Record{record(1, "15"), bad, record(3, "15")})
	require.Equal(t, []outbox.Fate{outbox.Acked, outbox.TooLarge, outbox.Waiting}, []outbox.Fate{results[0].Fate, results[1].Fate, results[2].Fate})
	require.Equal(t, fault.Infra, fault.Of(results[1].Err))
	require.Equal(t, fault.Outage, fault.Of(results[2].Err))
	require.Len(t, b.Records(t)[results[0].Partition], 1)
}

func blankKey(t *testing.T, b Bench) {
	t.Helper()
	require.Equal(t, outbox.Refused, b.Kafka.Send(t.Context(), []outbox.Record{record(1, "")})[0].Fate)
}

func tombstone(t *testing.T, b Bench) {
	t.Helper()
	r := record(1, "15")
	r.Value = nil
	results := b.Kafka.Send(t.Context(), []outbox.Record{r})
	require.Nil(t, b.Records(t)[results[0].Partition][0].Value)
}

func tail(t *testing.T, b Bench) {
	t.Helper()
	sent := records(1, 40)
	results := b.Kafka.Send(t.Context(), sent)
	tail, err := b.Kafka.Tail(t.Context(), len(sent))
	require.NoError(t, err)
	require.Len(t, tail, len(sent))
	for i, r := range results {
		require.Equal(t, outbox.Place{Partition: r.Partition, Offset: r.Offset}, tail[sent[i].EventID])
	}
}

func awayAndBack(t *testing.T, b Bench) {
	t.Helper()
	if b.Away == nil {
		t.Skip("this broker cannot be sent away")
	}
	require.NoError(t, b.Kafka.Check(t.Context()))
	b.Away(true)
	require.Equal(t, fault.Outage, fault.Of(b.Kafka.Check(t.Context())))
	r := b.Kafka.Send(t.Context(), records(1, 1))[0]
	require.Equal(t, outbox.Waiting, r.Fate)
	require.Equal(t, fault.Outage, fault.Of(r.Err))
	_, err := b.Kafka.Tail(t.Context(), 1)
	require.Equal(t, fault.Outage, fault.Of(err))
	b.Away(false)
	require.NoError(t, b.Kafka.Check(t.Context()))
	require.Equal(t, outbox.Acked, b.Kafka.Send(t.Context(), records(1, 1))[0].Fate)
}

func records(first, n int) []outbox.Record {
	out := make([]outbox.Record, n)
	for i := range out {
		out[i] = record(first+i, fmt.Sprint((first+i)%13))
	}
	return out
}

func record(id int, key string) outbox.Record {
	return outbox.Record{
		EventID: int64(id), Key: key, Value: fmt.Appendf(nil, `{"eventId":%d}`, id),
		Headers: []outbox.Header{{Key: "event-id", Value: fmt.Sprint(id)}},
	}
}
