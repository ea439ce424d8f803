package kafka

import "math"

// identity is how brokers know a producer: they take a batch only when it carries the next number of its partition, and
// answer one they have already with its offset instead of appending it twice.
type identity struct {
	known bool
	id    int64
	epoch int16
	next  map[int32]int32 // partition → number of the next record, counted from 0 in each epoch
	// doubts: partition → event ids of the batch that was given up without an answer. The same records under the same numbers
	// are appended once, whether the batch arrived or not.
	doubts map[int32][]int64
}

// assume takes over an identity a broker gave.
func (i *identity) assume(id int64, epoch int16) {
	*i = identity{known: true, id: id, epoch: epoch, next: make(map[int32]int32), doubts: make(map[int32][]int64)}
}

// forget gives the identity up; another one must be asked for.
func (i *identity) forget() { *i = identity{} }

// bump starts a new epoch of the same identity (KIP-360). From then on brokers refuse what may still be under way from
// the epoch before, so that a batch given up can not land behind its successors.
func (i *identity) bump() {
	switch {
	case !i.known:
	case i.epoch == math.MaxInt16:
		i.forget()
	default:
		i.assume(i.id, i.epoch+1)
	}
}

// advance counts n records appended to a partition; numbers wrap to 0 after the largest.
func (i *identity) advance(partition int32, n int) {
	i.next[partition] = int32((int64(i.next[partition]) + int64(n)) & math.MaxInt32)
}
