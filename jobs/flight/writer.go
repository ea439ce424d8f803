package flight

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// writer appends JSON. Every element leaves a comma behind, which close takes back; it trusts its caller to nest properly.
type writer struct {
	buf  []byte
	zone *time.Location
}

func (w *writer) open(bracket byte) { w.buf = append(w.buf, bracket) }

func (w *writer) close(bracket byte) {
	w.buf = append(w.done(), bracket, ',')
}

// done is what has been written, without the last comma.
func (w *writer) done() []byte { return bytes.TrimSuffix(w.buf, []byte{','}) }

// name begins a member of an object.
func (w *writer) name(name string) *writer {
	w.buf = append(sis.AppendJSON(w.buf, sis.Value{Type: sis.Text, Str: name}, nil), ':')
	return w
}

// raw writes an element that is JSON already.
func (w *writer) raw(element []byte) { w.buf = append(append(w.buf, element...), ',') }

func (w *writer) null() { w.buf = append(w.buf, "null,"...) }

func (w *writer) number(n int64) { w.buf = append(strconv.AppendInt(w.buf, n, 10), ',') }

func (w *writer) text(s string) { w.value(sis.Value{Type: sis.Text, Str: s}) }

func (w *writer) position(p message.Position) {
	if p.Generation == 0 {
		w.number(p.ID)
	} else {
		w.text(p.String())
	}
}

func (w *writer) value(v sis.Value) { w.buf = append(sis.AppendJSON(w.buf, v, w.zone), ',') }

// field writes the value of a top-level field of the flight JSON; null when it has been cleared.
func (w *writer) field(f *Flight, name string) {
	switch name {
	case "ext":
		w.object(f.Ext)
		return
	case "mafl":
		w.texts(f.MAFL)
		return
	case "abdg":
		if f.ABDG == "" {
			w.null()
		} else {
			w.text(f.ABDG)
		}
		return
	}
	if l, found := sis.ListByName(name); found {
		w.list(f, l)
	} else if v, set := f.Scalars[name]; set {
		w.value(v)
	} else {
		w.group(f, name)
	}
}

// all writes every field that is set, in the order of the catalogue.
func (w *writer) all(f *Flight) {
	w.buf = append(sis.AppendMembers(w.done(), f.Scalars, w.zone), ',')
	lists := sis.ListSpecs()
	for i := range lists {
		if l := &lists[i]; !byStand(l.Name) && len(f.Lists[l.Name]) > 0 {
			w.name(l.Name).list(f, l)
		}
	}
	if len(f.Ext) > 0 {
		w.name("ext").object(f.Ext)
	}
	if len(f.MAFL) > 0 {
		w.name("mafl").texts(f.MAFL)
	}
	if f.ABDG != "" {
		w.name("abdg").text(f.ABDG)
	}
}

// object writes ext, in the order of the names.
func (w *writer) object(members map[string]json.RawMessage) {
	if len(members) == 0 {
		w.null()
		return
	}
	w.open('{')
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w.name(name).raw(members[name])
	}
	w.close('}')
}

func (w *writer) texts(all []string) {
	if len(all) == 0 {
		w.null()
		return
	}
	w.open('[')
	for _, s := range all {
		w.text(s)
	}
	w.close(']')
}

// group writes the scalars of a group as one object; null when none is set, which is also how a cleared scalar gets here.
func (w *writer) group(f *Flight, group string) {
	start := len(w.buf)
	w.open('{')
	for _, m := range sis.ScalarSpecs() {
		if v, set := f.Scalars[m.Name]; set && m.Group == group {
			w.name(m.JSON).value(v)
		}
	}
	if len(w.buf) == start+1 {
		w.buf = w.buf[:start]
		w.null()
		return
	}
	w.close('}')
}

func (w *writer) list(f *Flight, l *sis.ListSpec) {
	entries := f.Lists[l.Name]
	if len(entries) == 0 {
		w.null()
		return
	}
	w.open('[')
	for _, e := range entries {
		w.open('{')
		w.name(l.Key.JSON)
		if l.Numbered() {
			w.raw([]byte(e.Key))
		} else {
			w.text(e.Key)
		}
		w.members(l.Fields, e.Fields)
		if l.Name == "psdt" {
			w.atStand(f, e, "psht")
			w.atStand(f, e, "tipt")
		}
		w.sub(l.Sub, e.Sub)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) members(specs []sis.Field, fields sis.Fields) {
	for i := range specs {
		if v, set := fields[specs[i].Name]; set {
			w.name(specs[i].JSON).value(v)
		}
	}
}

// atStand writes what is kept by stand into the psdt entry of the stand.
func (w *writer) atStand(f *Flight, stand sis.Entry, name string) {
	fields := f.atStand(name, stand)
	if l, known := sis.ListByName(name); known && fields != nil {
		w.name(name).open('{')
		w.members(l.Fields, fields)
		w.close('}')
	}
}

// sub writes the entries inside an entry, in the order in which they were told.
func (w *writer) sub(specs []sis.Field, subs []sis.Fields) {
	if len(subs) == 0 {
		return
	}
	w.name("vipt").open('[')
	for _, s := range subs {
		w.open('{')
		w.members(specs, s)
		w.close('}')
	}
	w.close(']')
}
