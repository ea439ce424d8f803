package outbox

import (
	"cmp"
	"maps"
	"slices"
)

// Unsent is a schd event that waits to be sent, without its value.
type Unsent struct{ ID, FLID int64 }

// Send is one schd event to send and all those it stands for, itself among them, ascending: once it is acknowledged, they
// are all SENT.
type Send struct {
	ID         int64
	Represents []int64
}

// Newest plans a flush: of each flight the newest waiting event, which is the one with the highest id, in the order of their
// ids (design §7).
func Newest(waiting []Unsent) []Send {
	byFLID := map[int64][]int64{}
	for _, w := range waiting {
		byFLID[w.FLID] = append(byFLID[w.FLID], w.ID)
	}
	sends := make([]Send, 0, len(byFLID))
	for ids := range maps.Values(byFLID) {
		slices.Sort(ids)
		sends = append(sends, Send{ids[len(ids)-1], ids})
	}
	slices.SortFunc(sends, func(a, b Send) int { return cmp.Compare(a.ID, b.ID) })
	return sends
}
