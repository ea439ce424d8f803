package flight

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"msgexchange/jobs/sis"
)

// compare finds what differs between two states of a flight. Before is nil or deleted for a flight that comes into being.
func compare(before, after *Flight) Change {
	c := Change{Before: before, After: after}
	was := before
	if before == nil {
		was = &Flight{}
	}
	c.Lists = changedLists(was, after)
	switch {
	case !before.Live() && !after.Live():
	case !before.Live():
		none := &Flight{}
		c.Op, c.Fields = Create, changedFields(none, after, changedLists(none, after))
	case !after.Live():
		c.Op = Delete
	default:
		if c.Fields = changedFields(was, after, c.Lists); len(c.Fields) > 0 {
			c.Op = Update
		}
	}
	return c
}

// silent says that the flight must be stored although nobody sees a difference. Whatever is stored unseen has a provenance.
func (c Change) silent() bool {
	return c.Before == nil || c.Before.CreatedBy != c.After.CreatedBy || c.Before.DeletedBy != c.After.DeletedBy ||
		!maps.Equal(c.Before.Provenance, c.After.Provenance)
}

func changedLists(was, is *Flight) []string {
	if len(was.Lists) == 0 && len(is.Lists) == 0 {
		return nil
	}
	var names []string
	lists := sis.ListSpecs()
	for i := range lists {
		if name := lists[i].Name; !sameList(was, is, name) {
			names = append(names, name)
		}
	}
	return names
}

// changedFields are the names of the flight JSON that differ, in its order; lists are the lists that do.
func changedFields(was, is *Flight, lists []string) []string {
	names := changedScalars(was.Scalars, is.Scalars)
	specs := sis.ListSpecs()
	for i := range specs {
		name := specs[i].Name
		if !byStand(name) && slices.Contains(lists, name) || name == "psdt" && !sameShown(was, is) {
			names = append(names, name)
		}
	}
	if !maps.EqualFunc(was.Ext, is.Ext, sameText) {
		names = append(names, "ext")
	}
	if !slices.Equal(was.MAFL, is.MAFL) {
		names = append(names, "mafl")
	}
	if was.ABDG != is.ABDG {
		names = append(names, "abdg")
	}
	return names
}

// changedScalars are the single values that differ, in wire order, a group under its own name.
func changedScalars(was, is sis.Fields) (names []string) {
	changed := differing(was, is)
	if len(changed) == 0 {
		return nil
	}
	const few = 8 // found faster in changed than sixty in both maps
	specs := sis.ScalarSpecs()
	for i := range specs {
		f := &specs[i]
		if len(changed) > few && was[f.Name] == is[f.Name] || len(changed) <= few && !slices.Contains(changed, f.Name) {
			continue
		}
		if f.Group == "" {
			names = append(names, f.Name)
		} else if !slices.Contains(names, f.Group) {
			names = append(names, f.Group)
		}
	}
	return names
}

// differing are the names under which two maps differ, in no order.
func differing(was, is sis.Fields) (names []string) {
	for name, v := range is {
		if was[name] != v {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, set := is[name]; !set {
			names = append(names, name)
		}
	}
	return names
}

func sameList(was, is *Flight, name string) bool {
	a, b := was.Lists[name], is.Lists[name]
	if len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] {
		return true // nobody touched it: see Clone
	}
	return slices.EqualFunc(a, b, sameEntry)
}

// sameShown compares the push-back and tractor times of the stands that the flight has.
func sameShown(was, is *Flight) bool {
	if !was.knowsStands() && !is.knowsStands() {
		return true
	}
	for _, stand := range is.Lists["psdt"] {
		for _, name := range [...]string{"psht", "tipt"} {
			a, b := was.atStand(name, stand), is.atStand(name, stand)
			if !maps.Equal(a, b) {
				return false
			}
		}
	}
	return true
}

// knowsStands says that push-back or tractor times are known of any stand.
func (f *Flight) knowsStands() bool { return len(f.Lists["psht"]) > 0 || len(f.Lists["tipt"]) > 0 }

// atStand gives what a list kept by stand says about the stand of a psdt entry; nil when nothing.
func (f *Flight) atStand(name string, stand sis.Entry) sis.Fields {
	entries := f.Lists[name]
	if at := indexOf(entries, stand.Fields["psst"].Str); at >= 0 {
		return entries[at].Fields
	}
	return nil
}

func sameEntry(a, b sis.Entry) bool {
	return a.Key == b.Key && maps.Equal(a.Fields, b.Fields) && slices.EqualFunc(a.Sub, b.Sub, maps.Equal[sis.Fields, sis.Fields])
}

func sameText(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
