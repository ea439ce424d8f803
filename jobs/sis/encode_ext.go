package sis

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// ext writes unknown elements back as elements: what was an attribute becomes one again, what was a filled child may become an
// attribute, which reads the same. The names stay in lower case, so that none is taken for one the catalogue knows.
func (e *encoder) ext(all map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.unknown(name, all[name])
	}
}

func (e *encoder) unknown(elem string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	switch {
	case bytes.HasPrefix(raw, []byte{'['}):
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // not JSON: nothing to write
		for _, item := range items {
			e.unknown(elem, item)
		}
	case bytes.HasPrefix(raw, []byte{'{'}):
		var parts map[string]json.RawMessage
		_ = json.Unmarshal(raw, &parts)
		e.object(elem, parts)
	default:
		e.text(elem, plainText(raw))
	}
}

func (e *encoder) object(elem string, parts map[string]json.RawMessage) {
	names := slices.Sorted(maps.Keys(parts))
	filled := func(name string) bool { // an empty attribute, and empty text, would be none
		return bytes.HasPrefix(parts[name], []byte{'"'}) && plainText(parts[name]) != ""
	}
	e.buf = append(append(e.buf, '<'), elem...)
	for _, name := range names {
		if name != textMember && filled(name) {
			e.buf = append(append(append(e.buf, ' '), name...), `="`...)
			e.escape([]byte(plainText(parts[name])))
			e.buf = append(e.buf, '"')
		}
	}
	e.buf = append(e.buf, '>')
	for _, name := range names {
		switch {
		case !filled(name):
			e.unknown(name, parts[name])
		case name == textMember:
			e.escape([]byte(plainText(parts[name])))
		}
	}
	e.close(elem)
}

func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
