package flight

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// writer appends JSON. Every element leaves a comma behind, which close takes back; it trusts its caller to nest properly.
type writer struct {
	buf   []byte
	zone  *time.Location
	lists []listLayout
}

func newWriter(dst []byte, zone *time.Location) *writer {
	return &writer{buf: dst, zone: zone, lists: listLayouts()}
}

func (w *writer) open(bracket byte) { w.buf = append(w.buf, bracket) }

func (w *writer) close(bracket byte) {
	w.buf = append(w.done(), bracket, ',')
}

// done is what has been written, without the last comma.
func (w *writer) done() []byte { return bytes.TrimSuffix(w.buf, []byte{','}) }

// name begins a member of an object.
func (w *writer) name(name string) *writer {
	w.buf = append(appendText(w.buf, name), ':')
	return w
}

// raw writes an element that is JSON already.
func (w *writer) raw(element []byte) { w.buf = append(append(w.buf, element...), ',') }

func (w *writer) null() { w.buf = append(w.buf, "null,"...) }

func (w *writer) number(n int64) { w.buf = append(strconv.AppendInt(w.buf, n, 10), ',') }

func (w *writer) text(s string) { w.buf = append(appendText(w.buf, s), ',') }

func (w *writer) position(p message.Position) {
	if p.Generation == 0 {
		w.number(p.ID)
	} else {
		w.text(p.String())
	}
}

// value writes a value of the wire as JSON has it: moments in the zone, exact numbers.
func (w *writer) value(v sis.Value) {
	switch v.Type {
	case sis.Empty:
		w.null()
	case sis.Text:
		w.text(v.Str)
	case sis.Moment:
		w.buf = append(w.buf, '"')
		w.buf = time.Unix(v.Num, 0).In(w.zone).AppendFormat(w.buf, time.RFC3339)
		w.buf = append(w.buf, '"', ',')
	case sis.Number:
		w.number(v.Num)
	case sis.Decimal:
		w.raw([]byte(v.Str))
	}
}

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
	for _, l := range w.lists {
		if l.Name == name {
			w.list(f, l)
			return
		}
	}
	if v, set := f.Scalars[name]; set {
		w.value(v)
		return
	}
	w.group(f, name+".")
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

// group writes scalars that are told together as one object: those whose names begin with prefix.
func (w *writer) group(f *Flight, prefix string) {
	start := len(w.buf)
	w.open('{')
	for _, name := range scalarNames() {
		if v, set := f.Scalars[name]; set && strings.HasPrefix(name, prefix) {
			w.name(strings.TrimPrefix(name, prefix)).value(v)
		}
	}
	if len(w.buf) == start+1 {
		w.buf = w.buf[:start]
		w.null()
		return
	}
	w.close('}')
}

func (w *writer) list(f *Flight, l listLayout) {
	entries := f.Lists[l.Name]
	if len(entries) == 0 {
		w.null()
		return
	}
	w.open('[')
	for _, e := range entries {
		w.open('{')
		w.key(l, e.Key)
		w.members(l.Fields, e.Fields)
		if l.Name == "psdt" {
			w.atStand(f, e)
		}
		w.sub(e.Sub)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) key(l listLayout, key string) {
	w.name(l.Key)
	if l.Numbered {
		w.raw([]byte(key))
	} else {
		w.text(key)
	}
}

func (w *writer) members(names []string, fields sis.Fields) {
	for _, name := range names {
		v, set := fields[name]
		if !set {
			continue
		}
		if name == "dura" {
			name = "duraMinutes" // the only duration of the wire
		}
		w.name(name).value(v)
	}
}

// atStand writes what is kept by stand into the psdt entry of the stand.
func (w *writer) atStand(f *Flight, stand sis.Entry) {
	for _, l := range w.lists {
		if !byStand(l.Name) {
			continue
		}
		if fields := f.atStand(l.Name, stand); fields != nil {
			w.name(l.Name).open('{')
			w.members(l.Fields, fields)
			w.close('}')
		}
	}
}

// sub writes the services of a VIP, in the order in which they were told.
func (w *writer) sub(services []sis.Fields) {
	if len(services) == 0 {
		return
	}
	w.name("vipt").open('[')
	for _, s := range services {
		w.open('{')
		w.members([]string{"vscd", "vtqy", "vtst", "vtet"}, s)
		w.close('}')
	}
	w.close(']')
}

// appendText appends s as a JSON string. Unlike encoding/json it leaves <, > and & as people write them.
func appendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
