package inbox

import (
	"slices"
	"time"
)

// Policy is what becomes of rows that came late.
type Policy string

// The closed set of policies. Both count and warn.
const (
	Report Policy = "report" // only told
	Apply  Policy = "apply"  // enqueued too; provenance keeps it from turning back time (design §6)
)

// AllPolicies lists the policies.
func AllPolicies() []Policy { return []Policy{Report, Apply} }

// Late sorts the rows that a look into passed holes has found. It gives the late ones, ascending, and what remains of the
// holes: a row is late once, after that its id is an id like any other.
func Late(passed []Hole, found []Row) (late []Row, remaining []Hole) {
	found = slices.Clone(found)
	slices.SortFunc(found, func(a, b Row) int { return int(a.ID - b.ID) })
	for _, h := range passed {
		for _, r := range found {
			if !h.Contains(r.ID) {
				continue
			}
			late = append(late, r)
			if h.First < r.ID {
				remaining = append(remaining, Hole{Range{h.First, r.ID - 1}, h.FirstSeen})
			}
			h.First = r.ID + 1
		}
		if h.First <= h.Last {
			remaining = append(remaining, h)
		}
	}
	return late, remaining
}

// Memory is what we hold of an id at or below the watermark.
type Memory struct {
	// Known says that a row of this id was taken over in this generation.
	Known bool
	// ReceivedAt as the row had it then; zero when it did not say.
	ReceivedAt time.Time
	// SameText says that the text is the one taken over, or that we hold it no more.
	SameText bool
	// SameMessage says, of another text, that it still is the message taken over: it has its identity, or was emptied.
	SameMessage bool
}

// Regressed says that row, found at or below the watermark and in no passed hole, can only be there because ids are given
// out again (K14): a known id with another message, or an unknown one received after everything up to W.
func Regressed(c Cursor, row Row, m Memory) bool {
	if m.Known {
		return !sameSecond(m.ReceivedAt, row.ReceivedAt) || !m.SameText && !m.SameMessage
	}
	return !c.ReceivedAt.IsZero() && row.ReceivedAt.After(c.ReceivedAt)
}

// Edited says that row was taken over and its text changed afterwards in its place. The owner may do that; we keep to
// what we have taken over.
func Edited(row Row, m Memory) bool {
	return m.Known && sameSecond(m.ReceivedAt, row.ReceivedAt) && !m.SameText && m.SameMessage
}

// sameSecond compares what the mailbox said then and now; DATETIME has whole seconds.
func sameSecond(a, b time.Time) bool {
	return a.IsZero() == b.IsZero() && a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}
