package kafkatest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
)

// Bench is a topic under test, and the means to look into it from the other side and to trouble it.
type Bench struct {
	Kafka   deliver.Kafka
	Check   func(ctx context.Context) error
	Another func(t *testing.T) deliver.Kafka // a second worker's way to the same topic
	Records func(t *testing.T) map[int32][]outbox.Record
	Away    func(away bool) // nil: cannot be done
	// TooLarge is a record the topic will not take for its size.
	TooLarge outbox.Record
}

// Chair is where seats come from that follow one another: each claims the next term. The zero Chair is ready.
type Chair struct {
	mu      sync.Mutex
	term    outbox.Term
	claimed bool
	holder  *place
}

type place struct{ chair *Chair }

// Seat gives a new seat; those given before can claim nothing any more.
func (c *Chair) Seat() deliver.Seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder = &place{c}
	return c.holder
}

// Claim is a deliver.Seat's.
func (p *place) Claim(_ context.Context, offer outbox.Term) (outbox.Term, error) {
	c := p.chair
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.holder != p:
		return outbox.Term{}, fault.New(fault.Outage, "claim a term", "the seat is another's")
	case !c.claimed:
		c.term, c.claimed = offer, true
	default:
		c.term.Epoch++
	}
	return c.term, nil
}

// Run checks that a topic does what workers/deliver relies on. open gives an empty one each time.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, Bench){
		"order and places":                orderAndPlaces,
		"one key, one partition":          oneKeyOnePartition,
		"nothing behind a refused record": nothingBehindRefused,
		"neighbours of a refused record":  neighboursOfRefused,
		"K21 blank key":                   blankKey,
		"K21 tombstone":                   tombstone,
		"tail":                            tail,
		"away and back":                   awayAndBack,
		"replaced appends nothing":        replaced,
		"a sender that comes back":        comesBack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func orderAndPlaces(t *testing.T, b Bench) {
	t.Helper()
	sent := Records(1, 300)
	results := b.Kafka.Send(t.Context(), new(Chair).Seat(), sent)
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
	sent := Records(1, 100)
	for i, r := range b.Kafka.Send(t.Context(), new(Chair).Seat(), sent) {
		p, seen := byKey[sent[i].Key]
		require.True(t, !seen || p == r.Partition)
		byKey[sent[i].Key] = r.Partition
	}
}

func nothingBehindRefused(t *testing.T, b Bench) {
	t.Helper()
	bad := b.TooLarge
	bad.EventID, bad.Key = 2, "15"
	results := b.Kafka.Send(t.Context(), new(Chair).Seat(), []outbox.Record{record(1, "15"), bad, record(3, "15")})
	require.Equal(t, []outbox.Fate{outbox.Acked, outbox.TooLarge, outbox.Waiting}, []outbox.Fate{results[0].Fate, results[1].Fate, results[2].Fate})
	require.Equal(t, fault.Refused, fault.Of(results[1].Err))
	require.Equal(t, fault.Outage, fault.Of(results[2].Err))
	require.Len(t, b.Records(t)[results[0].Partition], 1)
}

// Among many, only the record that is refused suffers; what waits behind it goes out the next time.
func neighboursOfRefused(t *testing.T, b Bench) {
	t.Helper()
	const n, guilty = 60, 37
	sent := Records(1, n)
	bad := b.TooLarge
	bad.EventID, bad.Key, bad.Headers = sent[guilty].EventID, sent[guilty].Key, sent[guilty].Headers
	sent[guilty] = bad
	seat := new(Chair).Seat()
	var again []outbox.Record
	results := b.Kafka.Send(t.Context(), seat, sent)
	for i, r := range results {
		switch {
		case i == guilty:
			require.Equal(t, outbox.TooLarge, r.Fate)
		case i > guilty && r.Partition == results[guilty].Partition:
			require.Equal(t, outbox.Waiting, r.Fate, "%d", i)
			again = append(again, sent[i])
		default:
			require.Equal(t, outbox.Acked, r.Fate, "%d: %v", i, r.Err)
		}
	}
	Deliver(t, b.Kafka, seat, again)
	require.Zero(t, RequireFirstAppearances(t, b, n-1))
}

func blankKey(t *testing.T, b Bench) {
	t.Helper()
	r := b.Kafka.Send(t.Context(), new(Chair).Seat(), []outbox.Record{record(1, "")})[0]
	require.Equal(t, outbox.Refused, r.Fate)
	require.Equal(t, fault.Refused, fault.Of(r.Err))
}

func tombstone(t *testing.T, b Bench) {
	t.Helper()
	r := record(1, "15")
	r.Value = nil
	results := b.Kafka.Send(t.Context(), new(Chair).Seat(), []outbox.Record{r})
	require.Nil(t, b.Records(t)[results[0].Partition][0].Value)
}

func tail(t *testing.T, b Bench) {
	t.Helper()
	sent := Records(1, 40)
	results := b.Kafka.Send(t.Context(), new(Chair).Seat(), sent)
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
		t.Skip("this broker cannot be sent away; it is stopped, killed and frozen under \"troubled\"")
	}
	seat := new(Chair).Seat()
	require.NoError(t, b.Check(t.Context()))
	b.Away(true)
	require.Equal(t, fault.Outage, fault.Of(b.Check(t.Context())))
	r := b.Kafka.Send(t.Context(), seat, Records(1, 1))[0]
	require.Equal(t, outbox.Waiting, r.Fate)
	require.Equal(t, fault.Outage, fault.Of(r.Err))
	_, err := b.Kafka.Tail(t.Context(), 1)
	require.Equal(t, fault.Outage, fault.Of(err))
	b.Away(false)
	require.NoError(t, b.Check(t.Context()))
	require.Equal(t, outbox.Acked, b.Kafka.Send(t.Context(), seat, Records(1, 1))[0].Fate)
}

// K04, K19: what a worker that was stopped for long sends when it goes on does not land behind its successor's records.
func replaced(t *testing.T, b Bench) {
	t.Helper()
	var chair Chair
	old, other := chair.Seat(), b.Another(t)
	Deliver(t, b.Kafka, old, []outbox.Record{record(1, "15")})
	Deliver(t, other, chair.Seat(), []outbox.Record{record(2, "15")})
	r := b.Kafka.Send(t.Context(), old, []outbox.Record{record(1, "15")})[0]
	require.Equal(t, outbox.Waiting, r.Fate)
	require.Equal(t, fault.Outage, fault.Of(r.Err))
	Deliver(t, other, chair.holder, []outbox.Record{record(3, "15")})
	require.Zero(t, RequireFirstAppearances(t, b, 3))
}

// Two workers that take turns are never refused for it, wherever each has sent.
func comesBack(t *testing.T, b Bench) {
	t.Helper()
	var chair Chair
	both := []deliver.Kafka{b.Kafka, b.Another(t)}
	const turns, each = 10, 20
	for i := range turns {
		Deliver(t, both[i%len(both)], chair.Seat(), Records(1+i*each, each))
	}
	require.Zero(t, RequireFirstAppearances(t, b, turns*each))
}

// Trouble is something that happens to a broker, which comes back after it.
type Trouble struct {
	Name   string
	Happen func(t *testing.T)
}

// RunTroubled sends a stream of records while each trouble happens in turn: the order of first appearances is that of the
// events in every partition, and nothing of the stream is lost or blamed (K19).
func RunTroubled(t *testing.T, b Bench, troubles []Trouble) {
	t.Helper()
	const each = 2000
	sent := 0
	seat := new(Chair).Seat()
	for _, trouble := range troubles {
		t.Run(trouble.Name, func(t *testing.T) {
			done := make(chan struct{})
			go func() { defer close(done); trouble.Happen(t) }()
			defer func() { <-done }()
			first := true
			for over := false; first || !over; sent += each {
				first = false
				Deliver(t, b.Kafka, seat, Records(1+sent, each))
				select {
				case <-done:
					over = true
				default:
				}
			}
			Deliver(t, b.Kafka, seat, Records(1+sent, each))
			sent += each
			require.Eventually(t, func() bool { return b.Check(t.Context()) == nil }, time.Minute, 100*time.Millisecond)
			repeated := RequireFirstAppearances(t, b, sent)
			_, _ = fmt.Fprintf(t.Output(), "%d records in order, %d repeated\n", sent, repeated)
		})
	}
}

// Deliver sends records until all are acknowledged, as the outbox does: what waits is sent again with all behind it.
func Deliver(t *testing.T, k deliver.Kafka, seat deliver.Seat, recs []outbox.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for len(recs) > 0 {
		require.NoError(t, ctx.Err())
		batch := recs[:min(len(recs), 100)]
		var again []outbox.Record
		for i, r := range k.Send(ctx, seat, batch) {
			switch r.Fate {
			case outbox.Acked:
			case outbox.Waiting:
				require.Equal(t, fault.Outage, fault.Of(r.Err), "%v", r.Err)
				again = append(again, batch[i])
			case outbox.Refused, outbox.TooLarge:
				require.Fail(t, "an outage was blamed on an event", "%v", r.Err)
			}
		}
		recs = append(again, recs[len(batch):]...)
	}
}

// Resume is Deliver after a trouble: before each Send it looks what is there already, as workers/deliver does when in doubt.
func Resume(t *testing.T, k deliver.Kafka, seat deliver.Seat, recs []outbox.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for len(recs) > 0 {
		there, err := k.Tail(ctx, len(recs))
		require.NoError(t, ctx.Err(), "%v", err)
		if err != nil {
			continue
		}
		recs = slices.DeleteFunc(slices.Clone(recs), func(r outbox.Record) bool { _, ok := there[r.EventID]; return ok })
		for _, r := range k.Send(ctx, seat, recs) {
			require.Contains(t, []outbox.Fate{outbox.Acked, outbox.Waiting}, r.Fate, "an outage was blamed on an event: %v", r.Err)
		}
	}
}

// RequireFirstAppearances checks that each of n events is there, the first appearances ascending in every partition.
func RequireFirstAppearances(t *testing.T, b Bench, n int) (repeated int) {
	t.Helper()
	seen := make(map[int64]bool)
	for p, recs := range b.Records(t) {
		last := int64(0)
		for _, r := range recs {
			if seen[r.EventID] {
				repeated++
				continue
			}
			seen[r.EventID] = true
			require.Greater(t, r.EventID, last, "partition %d", p)
			last = r.EventID
		}
	}
	require.Len(t, seen, n)
	return repeated
}

// Records makes n records over a few keys; event ids count from first.
func Records(first, n int) []outbox.Record {
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
