package store

import "time"

// Floor is where the next read of a queue begins. Rows that left a queue stay in its index until a vacuum, and each read from
// the start steps over all of them: behind a hundred thousand that is more work than the rest of a batch. What comes into a
// queue comes in at its end, but for what an operator puts back; so the reader looks from the start again once in a while. Not
// for a queue in which what comes back must be seen first, as the head of the line is (O1). Not safe for concurrent use. The zero Floor is at the start.
type Floor struct {
	id    int64
	whole time.Time // when the queue was last read from the start
}

// recheck is how long something that came back below the floor may go unseen.
const recheck = time.Second

// After gives the id after which to read now.
func (f *Floor) After(now time.Time) int64 {
	if since := now.Sub(f.whole); since >= recheck || since < 0 {
		f.id, f.whole = 0, now
	}
	return f.id
}

// Rise says that first is the first that waits, as a read after After has just shown.
func (f *Floor) Rise(first int64) { f.id = first - 1 }
