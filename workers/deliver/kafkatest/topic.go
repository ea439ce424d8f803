// Package kafkatest has a topic in memory for the tests of workers/deliver, and the suite every topic must pass, that one
// and the real one.
package kafkatest

import (
	"context"
	"hash/fnv"
	"sync"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
)

const partitions = 4

// Topic is a topic in memory that can be made to fail. The zero Topic works. Safe for concurrent use.
type Topic struct {
	mu     sync.Mutex
	logs   [partitions][]outbox.Record
	away   error
	deaf   bool
	secret bool
	judge  func(outbox.Record) outbox.Fate
	sends  int
	terms  [partitions]int16 // the newest epoch each partition has seen
	seats  map[deliver.Seat]int16
}

// Away makes Send, Tail and Check fail with an outage until it is called with false.
func (t *Topic) Away(away bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = nil
	if away {
		t.away = fault.New(fault.Outage, "send to kafka", "the broker is away")
	}
}

// Deaf makes Send append everything and say that nobody knows.
func (t *Topic) Deaf(deaf bool) { t.mu.Lock(); defer t.mu.Unlock(); t.deaf = deaf }

// Secret forbids reading.
func (t *Topic) Secret() { t.mu.Lock(); defer t.mu.Unlock(); t.secret = true }

// Judge is asked what becomes of each record; nil accepts all.
func (t *Topic) Judge(judge func(outbox.Record) outbox.Fate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.judge = judge
}

// Sends counts the calls of Send that reached the topic.
func (t *Topic) Sends() int { t.mu.Lock(); defer t.mu.Unlock(); return t.sends }

// Records gives what is in each partition.
func (t *Topic) Records() map[int32][]outbox.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[int32][]outbox.Record)
	for p, log := range t.logs {
		if len(log) > 0 {
			out[int32(p)] = append([]outbox.Record(nil), log...)
		}
	}
	return out
}

// Send appends what no partition has a newer seat's records of.
func (t *Topic) Send(ctx context.Context, seat deliver.Seat, records []outbox.Record) []outbox.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	results := make([]outbox.Result, len(records))
	if t.away != nil {
		for i := range results {
			results[i].Err = t.away
		}
		return results
	}
	epoch, known := t.seats[seat]
	if !known {
		term, err := seat.Claim(ctx, outbox.Term{Cluster: "memory", Producer: 1})
		if err != nil {
			for i := range results {
				results[i].Err = fault.Wrap(fault.Outage, "send to kafka", err)
			}
			return results
		}
		if t.seats == nil {
			t.seats = make(map[deliver.Seat]int16)
		}
		epoch, t.seats[seat] = term.Epoch, term.Epoch
	}
	t.sends++
	stopped := make(map[int32]bool)
	for i, r := range records {
		results[i] = t.append(r, epoch, stopped)
	}
	return results
}

func (t *Topic) append(r outbox.Record, epoch int16, stopped map[int32]bool) outbox.Result {
	h := fnv.New32a()
	h.Write([]byte(r.Key))
	p := int32(h.Sum32() % partitions)
	result := outbox.Result{Partition: p, Fate: outbox.Acked}
	if t.judge != nil {
		result.Fate = t.judge(r)
	}
	if r.Key == "" {
		result.Fate = outbox.Refused
	}
	if stopped[p] || epoch < t.terms[p] {
		result.Fate = outbox.Waiting
	}
	switch result.Fate {
	case outbox.Acked:
		t.terms[p] = epoch
		result.Offset = int64(len(t.logs[p]))
		t.logs[p] = append(t.logs[p], r)
		if t.deaf {
			result = outbox.Result{Partition: p, Err: fault.New(fault.Outage, "send to kafka", "no answer")}
		}
		return result
	case outbox.Refused, outbox.TooLarge:
		result.Err = fault.New(fault.Refused, "send to kafka", "event %d refused", r.EventID)
	case outbox.Waiting:
		result.Err = fault.New(fault.Outage, "send to kafka", "behind a record that failed")
	}
	stopped[p] = true
	return result
}

// Tail gives the last records.
func (t *Topic) Tail(_ context.Context, n int) (map[int64]outbox.Place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.secret {
		return nil, fault.New(fault.Unsupported, "read the topic", "not allowed")
	}
	if t.away != nil {
		return nil, t.away
	}
	places := make(map[int64]outbox.Place)
	for p, log := range t.logs {
		for o := max(0, len(log)-n); o < len(log); o++ {
			if _, twice := places[log[o].EventID]; !twice {
				places[log[o].EventID] = outbox.Place{Partition: int32(p), Offset: int64(o)}
			}
		}
	}
	return places, nil
}

// Check says whether the topic is there.
func (t *Topic) Check(context.Context) error { t.mu.Lock(); defer t.mu.Unlock(); return t.away }
