// Package inbox decides how far the shared mailbox may be taken over: the watermark, the holes below which nothing may
// pass, the rows that come late, and ids that run backwards (design §4; known faults K11 to K14). Pure: it reads no
// mailbox and no clock.
//
// Ids are given out before their transaction commits, so a smaller id may show up after a larger one. The watermark W
// therefore follows the contiguous run of ids; a missing range is a hole, which W does not pass before the hole is older
// than any transaction may be. Passed holes are remembered, so that a row that comes later still is found.
package inbox

import "time"

// Row is one mailbox row as far as order is concerned: no text.
type Row struct {
	ID         int64
	ReceivedAt time.Time // zero: the mailbox does not say, or says something that is no date
}

// Message is a mailbox row with its text.
type Message struct {
	Row
	Text string // empty when Oversize
	// Size of the text in bytes, also when it was not loaded.
	Size int
	// Oversize says that the text is larger than any message may be; it was never loaded (contract §8.17).
	Oversize bool
	// BadDate says that CMINMSGS_DATE_RECEIVED held something that is no date; ReceivedAt is zero (K16).
	BadDate bool
}

// Range is the ids First..Last, both included.
type Range struct{ First, Last int64 }

// Contains says whether id is in the range.
func (r Range) Contains(id int64) bool { return r.First <= id && id <= r.Last }

// Width is how many ids the range has.
func (r Range) Width() int64 { return r.Last - r.First + 1 }

// Hole is a range of ids that are missing though larger ones are there.
type Hole struct {
	Range
	// FirstSeen is when we first saw it missing: persisted, ours, and never taken from a neighbour (K12).
	FirstSeen time.Time
}

// Cursor is how far a lane has come.
type Cursor struct {
	// Generation of ids; an operator's reseed begins a new one (contract §8.10).
	Generation int32
	// W is the watermark: every id up to it has been taken over or belongs to a hole that was passed.
	W int64
	// ReceivedAt is the latest moment at which a row up to W was received; zero while unknown.
	ReceivedAt time.Time
	// Step is the distance between neighbouring ids (auto_increment_increment), at least 1. Fewer ids than that missing
	// between two rows are no hole (K13).
	Step int64
	// Holes above W, ascending and apart.
	Holes []Hole
}

// Stop is why a lane takes nothing over any more. The stored spelling is the value.
type Stop string

// IDRegression says that ids ran backwards: the mailbox was emptied or restored, and ids are given out again (K14).
const IDRegression Stop = "id-regression"
