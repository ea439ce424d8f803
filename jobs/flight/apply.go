package flight

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// edit writes what one message says into one flight, which it may change. It is where "a message changes only what an
// older message set" (design §6) is kept: every write asks takes first. A message may overwrite itself, for a FLOP may
// have several bodies about one flight.
type edit struct {
	f   *Flight
	pos message.Position
	opt Options
}

// takes says that nothing newer than the message is stored under a key of the provenance.
func (e edit) takes(key string) bool { return !e.f.Provenance[key].After(e.pos) }

func (e edit) record(r *sis.Record) {
	e.room(r)
	e.scalars(r.Fields)
	e.forget(r.Lists)
	for name, list := range r.Lists {
		e.list(name, list)
	}
	for name, value := range r.Ext {
		e.ext(name, value)
	}
}

// room makes place in a new flight for all that a schedule says of it at once: growing by steps costs as much as the rest.
func (e edit) room(r *sis.Record) {
	if len(e.f.Scalars) > 0 {
		return
	}
	e.f.Scalars = make(sis.Fields, len(r.Fields))
	provenance := make(map[string]message.Position, len(e.f.Provenance)+len(r.Fields)+len(r.Lists)+len(r.Ext)+1) // and keyScheduled
	maps.Copy(provenance, e.f.Provenance)
	e.f.Provenance = provenance
}

// scalars sets and clears single values. Those of a group ("fdiv.ddes", "fdiv.text") have one provenance and replace each
// other as a whole.
func (e edit) scalars(fields sis.Fields) {
	for name, value := range fields {
		key := provenanceKey(name)
		if name == "flid" || !e.takes(key) {
			continue
		}
		if key != name {
			maps.DeleteFunc(e.f.Scalars, func(stored string, _ sis.Value) bool {
				_, said := fields[stored]
				return !said && provenanceKey(stored) == key
			})
		}
		if value.IsEmpty() {
			delete(e.f.Scalars, name)
		} else {
			e.f.Scalars[name] = value
		}
		e.f.Provenance[key] = e.pos
	}
}

// provenanceKey is the key under which the provenance of a scalar is kept: the group's name for those set together. The two
// times of PORT are set each by itself.
func provenanceKey(name string) string {
	group, _, grouped := strings.Cut(name, ".")
	if !grouped || group == "port" {
		return name
	}
	return group
}

// forget takes the provenance from the entries that are about to be cleared, of all lists in one pass: a schedule clears a
// dozen.
func (e edit) forget(lists map[string]sis.List) {
	if len(lists) == 0 {
		return
	}
	maps.DeleteFunc(e.f.Provenance, func(key string, _ message.Position) bool {
		name, _, entry := strings.Cut(key, ".")
		return entry && lists[name].Clear && e.takes(name) && e.takes(key)
	})
}

// list replaces or merges. The list's own provenance is the floor under that of its entries: whoever emptied the list
// spoke about every entry it could have had, so an entry keeps a provenance of its own only while that is newer. REPLACE
// is the case in which no message ever adds to what another has left; MERGE and PATCH add (dictionary 7).
func (e edit) list(name string, l sis.List) {
	if !e.takes(name) {
		return
	}
	stored := slices.Clone(e.f.Lists[name])
	if l.Clear {
		stored = e.clear(name, stored, l.Entries)
	}
	for _, entry := range l.Entries {
		key := name + "." + entry.Key
		if !e.takes(key) {
			continue
		}
		stored = put(name, stored, entry)
		if e.f.Provenance[name] != e.pos {
			e.f.Provenance[key] = e.pos
		}
	}
	if len(stored) == 0 {
		delete(e.f.Lists, name)
	} else {
		e.f.Lists[name] = stored
	}
	if name == "psdt" {
		e.f.ABDG = airbridges(e.f.Lists["psdt"], e.opt.Bridges)
	}
}

// clear takes all out of a list that is not newer than the message, and gives what stays; forget has been there before. Only a message that clears ever
// brings sub-entries (VIPT; a FLOP brings none), so entries that stay get theirs from it too.
func (e edit) clear(name string, stored, incoming []sis.Entry) []sis.Entry {
	kept := slices.DeleteFunc(stored, func(s sis.Entry) bool { return e.takes(name + "." + s.Key) })
	for i := range kept {
		kept[i].Sub = nil
		if at := indexOf(incoming, kept[i].Key); at >= 0 {
			kept[i].Sub = incoming[at].Sub
		}
	}
	e.f.Provenance[name] = e.pos
	return kept
}

// put writes an entry into a sorted list in place of the one with its key. A push-back or tractor entry that says nothing
// takes away what was known of its stand. An entry without sub-entries of its own leaves the stored ones.
func put(name string, stored []sis.Entry, entry sis.Entry) []sis.Entry {
	entry.Fields = filled(entry.Fields)
	at, found := slices.BinarySearchFunc(stored, entry.Key, func(s sis.Entry, key string) int {
		return CompareKeys(s.Key, key)
	})
	switch {
	case byStand(name) && len(entry.Fields) == 0:
		if found {
			stored = slices.Delete(stored, at, at+1)
		}
	case found:
		if entry.Sub == nil {
			entry.Sub = stored[at].Sub
		}
		stored[at] = entry
	default:
		stored = slices.Insert(stored, at, entry)
	}
	return stored
}

// byStand says that a list holds what is shown inside the psdt entry of the stand that is its key (PATCH, dictionary 7).
func byStand(name string) bool { return name == "psht" || name == "tipt" }

// filled is fields without the empty ones: inside an entry, empty says no more than absent. What decoding gives has none,
// and is then not copied.
func filled(fields sis.Fields) sis.Fields {
	full := fields
	for name, v := range fields {
		if !v.IsEmpty() {
			continue
		}
		if len(full) == len(fields) {
			full = maps.Clone(fields)
		}
		delete(full, name)
	}
	return full
}

func indexOf(entries []sis.Entry, key string) int {
	return slices.IndexFunc(entries, func(e sis.Entry) bool { return e.Key == key })
}

// CompareKeys orders entry numbers as numbers and everything else as text, numbers first.
func CompareKeys(a, b string) int {
	x, errA := strconv.ParseUint(a, 10, 8)
	y, errB := strconv.ParseUint(b, 10, 8)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// ext keeps an element the catalogue does not know; an empty one goes.
func (e edit) ext(name string, value []byte) {
	key := "ext." + name
	if !e.takes(key) {
		return
	}
	if bytes.Equal(value, []byte("null")) || bytes.Equal(value, []byte(`""`)) {
		delete(e.f.Ext, name)
	} else {
		e.f.Ext[name] = value
	}
	e.f.Provenance[key] = e.pos
}

// airbridges are the bridges of the stands of a psdt, in its order, each once, joined by commas (contract §8.29).
func airbridges(psdt []sis.Entry, bridges Bridges) string {
	if bridges == nil {
		return ""
	}
	var all []string
	for _, stand := range psdt {
		for _, bridge := range bridges.Bridges(stand.Fields["psst"].Str) {
			if !slices.Contains(all, bridge) {
				all = append(all, bridge)
			}
		}
	}
	return strings.Join(all, ",")
}
