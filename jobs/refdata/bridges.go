package refdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"msgexchange/jobs/fault"
)

// Stands knows which airbridges each stand has. Immutable and safe for concurrent use; it is flight.Bridges.
type Stands struct {
	bridges map[string][]string
}

// contact is REMT of a stand that has airbridges; every other value is a remote stand (dictionary 14).
const contact = "N"

// KeySeparator stands between the parts of a key that has several: of the neighbour's list, stand and bridge.
const KeySeparator = "|"

// NewStands reads the three lists by their names. When the neighbour's list of stands and bridges has any record it is what
// counts, else the bridges' own lists of stands do. The bridges of a stand come in the order of the records' keys. A stand
// that SLST says is remote has none.
func NewStands(lists map[string][]Record) (*Stands, error) {
	s := &Stands{bridges: map[string][]string{}}
	remote, err := remoteStands(lists[StandList])
	if err != nil {
		return nil, err
	}
	add := func(stand, bridge string) {
		if stand != "" && bridge != "" && !remote[stand] && !slices.Contains(s.bridges[stand], bridge) {
			s.bridges[stand] = append(s.bridges[stand], bridge)
		}
	}
	if pairs := byKey(lists[StandBridgeList]); len(pairs) > 0 {
		for _, r := range pairs {
			stand, bridge, _ := strings.Cut(r.Key, KeySeparator)
			add(stand, bridge)
		}
		return s, nil
	}
	for _, r := range byKey(lists[BridgeList]) {
		var bridge struct{ Stnd []string }
		if err := read(BridgeList, r, &bridge); err != nil {
			return nil, err
		}
		for _, stand := range bridge.Stnd {
			add(stand, r.Key)
		}
	}
	return s, nil
}

// Bridges gives the airbridges of a stand in their order; none for a remote stand and for one nobody knows.
func (s *Stands) Bridges(stand string) []string { return s.bridges[stand] }

// remoteStands are those that SLST says are not contact stands; one without REMT says nothing.
func remoteStands(list []Record) (map[string]bool, error) {
	remote := map[string]bool{}
	for _, r := range list {
		var stand struct{ Remt string }
		if err := read(StandList, r, &stand); err != nil {
			return nil, err
		}
		if stand.Remt != "" && stand.Remt != contact {
			remote[r.Key] = true
		}
	}
	return remote, nil
}

func byKey(list []Record) []Record {
	return slices.SortedFunc(slices.Values(list), func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
}

func read(rtype string, r Record, into any) error {
	if err := json.Unmarshal(r.Doc, into); err != nil {
		return fault.Wrap(fault.Infra, fmt.Sprintf("read record %q of %s", r.Key, rtype), err)
	}
	return nil
}
