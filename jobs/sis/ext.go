package sis

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// members are the parts of a JSON object under construction, by lower-case name. What stands more than once is an array, open
// until close: no other value begins with a bracket.
type members map[string]json.RawMessage

// textMember is where an unknown element with attributes or children has its own text (contract §8.2).
const textMember = "text"

func (m members) add(name string, value []byte) {
	name = strings.ToLower(name)
	switch before := m[name]; {
	case before == nil:
		m[name] = value
	case before[0] == '[':
		m[name] = append(append(before, ','), value...)
	default:
		m[name] = append(append(append([]byte{'['}, before...), ','), value...)
	}
}

// close ends the arrays.
func (m members) close() {
	for name, value := range m {
		if value[0] == '[' {
			m[name] = append(value, ']')
		}
	}
}

// object gives all of them in one, the text last.
func (m members) object() []byte {
	m.close()
	names := slices.Sorted(maps.Keys(m))
	if i := slices.Index(names, textMember); i >= 0 {
		names = append(slices.Delete(names, i, i+1), textMember)
	}
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendQuoted(out, name), ':'), m[name]...)
	}
	return append(out, '}')
}

// json is an unknown element: its text, or an object of attributes, children and text. An empty attribute is none, so that an
// element with nothing else is as empty as one without it (dictionary 3, rule 2).
func (n *node) json() []byte {
	if len(n.attrs) == 0 && len(n.kids) == 0 {
		return quotedText(n.text)
	}
	m := members{}
	for _, a := range n.attrs {
		if value := clean([]byte(a.value)); value != "" {
			m.add(a.name, appendQuoted(nil, value))
		}
	}
	for _, k := range n.kids {
		m.add(k.name, k.json())
	}
	if len(m) == 0 {
		return quotedText(n.text)
	}
	if n.text != "" {
		m.add(textMember, quotedText(n.text))
	}
	return m.object()
}

// quotedText is text as JSON, in no more memory than it needs: there may be a million.
func quotedText(text string) []byte {
	return slices.Clip(appendQuoted(make([]byte, 0, len(text)+len(`""`)), text))
}
