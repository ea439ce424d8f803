package inbox

import (
	"slices"
	"time"
)

// CommitDelay is the longest a writer's transaction may take from id to commit; a hole older than that is passed.
type CommitDelay time.Duration

// Limits of a round.
type Limits struct {
	// Take is the most rows to take.
	Take int
	// Delay after which a hole is passed.
	Delay CommitDelay
	// Settled, unless zero, is evidence in place of time: whoever was given an id before that moment has ended his
	// transaction, so that a hole first seen before it can no longer be filled (hole-probe).
	Settled time.Time
}

// over says that h holds no more.
func (l Limits) over(h Hole, now time.Time) bool {
	return now.Sub(h.FirstSeen) >= time.Duration(l.Delay) || h.FirstSeen.Before(l.Settled)
}

// Plan is what one round does.
type Plan struct {
	// Cursor after the round.
	Cursor Cursor
	// Take are the rows to enqueue, ascending; none of them lies behind a hole that still holds.
	Take []Row
	// Released are the holes W passed in this round; they are to be remembered.
	Released []Hole
	// Opened are the holes seen for the first time.
	Opened []Hole
	// More says that rows ready to be taken were left over because of the limit.
	More bool
}

// Held says that a hole keeps rows back.
func (p Plan) Held() bool { return !p.More && len(p.Cursor.Holes) > 0 }

// NextRelease is when the hole that holds W may be passed; zero when none holds it.
func (p Plan) NextRelease(delay CommitDelay) time.Time {
	if !p.Held() {
		return time.Time{}
	}
	return p.Cursor.Holes[0].FirstSeen.Add(time.Duration(delay))
}

// Advance plans one round over rows, which must be what one look at the mailbox found above W: ascending, complete up to
// its last row. Rows behind a hole are not taken, yet show further holes, so that all of them age at the same time (K13).
// Holes that are old enough at now, or settled, are passed, in order.
//
// Advance keeps the first sight of every part of a hole that is still missing and gives a fresh one to what was not
// missing before. A row that filled part of a hole splits it.
func Advance(c Cursor, rows []Row, limits Limits, now time.Time) Plan {
	holes, opened := missing(c, rows, now)
	p := Plan{Cursor: c, Opened: opened}

	for p.Cursor.Holes = holes; ; {
		hole := len(p.Cursor.Holes) > 0 && (len(rows) == 0 || p.Cursor.Holes[0].First < rows[0].ID)
		switch {
		case hole:
			h := p.Cursor.Holes[0]
			// Beyond the last row a hole is passed only when it begins right above W: what lies between is unknown.
			if !limits.over(h, now) || len(rows) == 0 && h.First != p.Cursor.W+1 {
				return p
			}
			p.Released = append(p.Released, h)
			p.Cursor.Holes = p.Cursor.Holes[1:]
			p.Cursor.W = h.Last
		case len(rows) == 0:
			return p
		case len(p.Take) == limits.Take:
			p.More = true
			return p
		default:
			p.Take = append(p.Take, rows[0])
			p.Cursor.W = rows[0].ID
			p.Cursor.ReceivedAt = latest(p.Cursor.ReceivedAt, rows[0].ReceivedAt, now)
			rows = rows[1:]
		}
	}
}

// missing lists the holes above W as rows show them, and which of them are new at now. Known holes beyond the last row
// stay as they are: the look did not reach them, or the rows that showed them are gone.
func missing(c Cursor, rows []Row, now time.Time) (all, opened []Hole) {
	known, last, least := c.Holes, c.W, max(c.Step, 1)
	for _, r := range rows {
		if gap := (Range{last + 1, r.ID - 1}); gap.Width() >= least {
			var parts []Hole
			parts, known = age(gap, known, now)
			all = append(all, parts...)
		}
		last = r.ID
	}
	for _, h := range all {
		if !slices.ContainsFunc(c.Holes, func(k Hole) bool { return k.Contains(h.First) }) {
			opened = append(opened, h)
		}
	}
	for _, h := range known {
		if h.Last > last { // and so last is not the highest number there is
			h.First = max(h.First, last+1)
			all = append(all, h)
		}
	}
	return all, opened
}

// age cuts gap where known holes begin and end: each part that was missing before keeps its own first sight, the others
// are first seen now. It gives back the known holes that reach beyond gap.
func age(gap Range, known []Hole, now time.Time) (parts, rest []Hole) {
	for len(known) > 0 && known[0].Last < gap.First {
		known = known[1:]
	}
	next := gap.First
	for _, h := range known {
		if h.First > gap.Last {
			break
		}
		if h.First > next {
			parts = append(parts, Hole{Range{next, h.First - 1}, now})
		}
		old := Range{max(h.First, next), min(h.Last, gap.Last)}
		parts = append(parts, Hole{old, h.FirstSeen})
		next = old.Last + 1
	}
	if next <= gap.Last {
		parts = append(parts, Hole{Range{next, gap.Last}, now})
	}
	return parts, known
}

// latest is the later of two moments; one that lies in the future by our clock says nothing.
func latest(a, b, now time.Time) time.Time {
	if b.After(a) && !b.After(now) {
		return b
	}
	return a
}
