package flight

import (
	"cmp"
	"maps"
	"slices"

	"msgexchange/jobs/sis"
)

// View is what Decide may know of the flights before a message: those it names, their masters and their children, all the
// way (see Needs). Nobody changes a flight he got from a View.
type View interface {
	// Flight gives a flight, deleted ones too; nil when it was never heard of.
	Flight(flid int64) *Flight
	// Children gives the live flights whose MAID is maid, by FLID.
	Children(maid int64) []*Flight
}

// Set is a View in memory. A batch is decided on one Set: after each message its outcome is put in, so that the next
// message sees it. Not safe for concurrent use.
type Set struct {
	flights  map[int64]*Flight
	children map[int64]map[int64]*Flight // master -> child -> the live child
	masters  map[int64]int64             // child -> the master it stands under in children
}

// NewSet makes a set of flights.
func NewSet(flights ...*Flight) *Set {
	s := &Set{flights: make(map[int64]*Flight, len(flights))}
	for _, f := range flights {
		s.Put(f)
	}
	return s
}

// Put adds f, in place of what the set had under its FLID.
func (s *Set) Put(f *Flight) {
	s.flights[f.FLID] = f
	if old, found := s.masters[f.FLID]; found {
		delete(s.children[old], f.FLID)
		delete(s.masters, f.FLID)
	}
	master := f.Master()
	if master == 0 || !f.Live() {
		return
	}
	if s.children == nil { // most sets, those of one message, never have any
		s.children, s.masters = map[int64]map[int64]*Flight{}, map[int64]int64{}
	}
	if s.children[master] == nil {
		s.children[master] = map[int64]*Flight{}
	}
	s.children[master][f.FLID] = f
	s.masters[f.FLID] = master
}

// Apply puts the new states of an outcome in.
func (s *Set) Apply(o Outcome) {
	for _, c := range o.Changes {
		s.Put(c.After)
	}
}

// Flight gives the flight with this FLID or nil.
func (s *Set) Flight(flid int64) *Flight { return s.flights[flid] }

// Children gives the live children of a master by FLID.
func (s *Set) Children(maid int64) []*Flight {
	if len(s.children[maid]) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(s.children[maid]), byFLID)
}

func byFLID(a, b *Flight) int { return cmp.Compare(a.FLID, b.FLID) }

// layered is a View in which the flights of top hide those of base.
type layered struct {
	base View
	top  *Set
}

func (l layered) Flight(flid int64) *Flight {
	if f := l.top.Flight(flid); f != nil {
		return f
	}
	return l.base.Flight(flid)
}

func (l layered) Children(maid int64) []*Flight {
	below := l.base.Children(maid)
	all := slices.Grow(l.top.Children(maid), len(below))
	for _, f := range below {
		if l.top.Flight(f.FLID) == nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, byFLID)
	return all
}

// Needs lists the FLIDs that must be looked up before messages can be decided, each once, ascending. A View must hold
// those that exist and, to closure, the masters and the children of every flight it holds.
func Needs(messages ...sis.Message) []int64 {
	var flids []int64
	for i := range messages {
		for _, r := range messages[i].Records {
			flids = append(flids, r.FLID)
			if maid := r.Fields["maid"]; !maid.IsEmpty() {
				flids = append(flids, maid.Num)
			}
		}
	}
	slices.Sort(flids)
	return slices.Compact(flids)
}
