package sis

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// members are the parts of a JSON object under construction, by lower-case name; what stands more than once becomes an array.
type members map[string]*bunch

// textMember is where an unknown element with attributes or children has its own text (contract §8.2).
const textMember = "text"

type bunch struct {
	count int
	json  []byte // the values, joined by commas
}

func (m members) add(name string, value []byte) {
	name = strings.ToLower(name)
	b := m[name]
	if b == nil {
		b = &bunch{}
		m[name] = b
	}
	if b.count++; b.count > 1 {
		b.json = append(b.json, ',')
	}
	b.json = append(b.json, value...)
}

func (b *bunch) appendTo(dst []byte) []byte {
	if b.count == 1 {
		return append(dst, b.json...)
	}
	return append(append(append(dst, '['), b.json...), ']')
}

// values gives each member by itself; nil when there are none.
func (m members) values() map[string]json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage, len(m))
	for name, b := range m {
		out[name] = b.appendTo(nil)
	}
	return out
}

// object gives all of them in one, the text last.
func (m members) object() []byte {
	names := slices.Sorted(maps.Keys(m))
	if i := slices.Index(names, textMember); i >= 0 {
		names = append(slices.Delete(names, i, i+1), textMember)
	}
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, name), ':')
		out = m[name].appendTo(out)
	}
	return append(out, '}')
}

// json is an unknown element: its text, or an object of attributes, children and text.
func (n *node) json() []byte {
	text := appendQuoted(nil, n.text)
	if len(n.attrs) == 0 && len(n.kids) == 0 {
		return text
	}
	m := members{}
	for _, a := range n.attrs {
		m.add(qualified(a.Name), appendQuoted(nil, clean([]byte(a.Value))))
	}
	for _, k := range n.kids {
		m.add(k.name, k.json())
	}
	if n.text != "" {
		m.add(textMember, text)
	}
	return m.object()
}
