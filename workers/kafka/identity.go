package kafka

import (
	"context"
	"math"

	"msgexchange/jobs/outbox"
)

// Seat is the right to send to a topic. One worker in the whole system has it at a time; whoever gets it claims a term
// newer than all before, so that brokers refuse what a predecessor may still have under way (decision 0009).
// Two Seats are equal when they are the same worker's, without a change of hands in between.
type Seat = interface {
	// Claim gives a term newer than every one given before: offer when there was none of its cluster, or no epoch is left.
	Claim(ctx context.Context, offer outbox.Term) (outbox.Term, error)
}

// identity is how brokers know a producer: they take a batch only when it carries the next number of its partition, and
// answer one they have already with its offset instead of appending it twice.
type identity struct {
	seat  Seat // of the sender whose identity it is
	known bool
	id    int64
	epoch int16
	next  map[int32]int32 // partition → number of the next record, counted from 0 in each epoch
	// doubts: partition → event ids of the batch that was given up without an answer. The same records under the same numbers
	// are appended once, whether the batch arrived or not.
	doubts map[int32][]int64
}

// sit makes the identity that of a seat; one of another seat is forgotten.
func (i *identity) sit(s Seat) {
	if i.seat != s {
		*i = identity{seat: s}
	}
}

// assume takes over a term that was claimed.
func (i *identity) assume(t outbox.Term) {
	*i = identity{
		seat: i.seat, known: true, id: t.Producer, epoch: t.Epoch, next: make(map[int32]int32), doubts: make(map[int32][]int64),
	}
}

// forget gives the term up; a newer one must be claimed. A partition that has taken something of that refuses what may still
// be under way of this (KIP-360), so that a batch given up can not land behind its successors.
func (i *identity) forget() { *i = identity{seat: i.seat} }

// advance counts n records appended to a partition; numbers wrap to 0 after the largest.
func (i *identity) advance(partition int32, n int) {
	i.next[partition] = int32((int64(i.next[partition]) + int64(n)) & math.MaxInt32)
}
