package sis

import (
	"bytes"
	"slices"
)

// usualDeclaration is how nearly every message begins. What it says counts for nothing: text is characters already.
const usualDeclaration = `<?xml version="1.0" encoding="UTF-8"?>`

// plain reads the token at s.pos if it is written as nearly all are: text without references, a tag of ASCII names whose
// attributes have neither references nor line breaks in them. encoding/xml takes five times as long over those and makes
// the same of them (FuzzPlain); whatever else there is, and whatever is wrong, is left to it. ok is false then, and nothing
// was read.
func (s *scanner) plain() (t token, ok bool) {
	rest := s.text[s.pos:]
	switch {
	case rest[0] != '<':
		return s.plainText(rest)
	case len(rest) > 2 && rest[1] == '/':
		return s.plainEnd(rest)
	}
	return s.plainStart(rest[:min(len(rest), maxTagBytes)])
}

func (s *scanner) plainText(rest []byte) (token, bool) {
	end := bytes.IndexByte(rest, '<')
	if end < 0 {
		end = len(rest)
	}
	text := rest[:end]
	if bytes.IndexByte(text, '&') >= 0 || bytes.IndexByte(text, '\r') >= 0 || bytes.Contains(text, []byte("]]>")) {
		return token{}, false
	}
	s.pos += end
	return token{kind: chars, text: text}, true
}

// plainEnd reads the end tag of the innermost open element; any other is the business of whoever tells what is wrong.
func (s *scanner) plainEnd(rest []byte) (token, bool) {
	if len(s.open) == 0 {
		return token{}, false
	}
	name := s.open[len(s.open)-1]
	end := len("</") + len(name)
	if len(rest) <= end || rest[end] != '>' || string(rest[len("</"):end]) != name {
		return token{}, false
	}
	s.pos += end + 1
	return token{kind: closing, name: name}, true
}

func (s *scanner) plainStart(tag []byte) (token, bool) {
	end := plainName(tag, 1)
	if end == 1 {
		return token{}, false
	}
	t := token{kind: opening, name: known(tag[1:end])}
	for end < len(tag) {
		switch c := tag[end]; {
		case c == '>':
			s.pos += end + 1
			return t, true
		case c == '/' && end+1 < len(tag) && tag[end+1] == '>':
			s.pos, s.closes = s.pos+end+2, true
			return t, true
		case c != ' ':
			return token{}, false
		}
		if end++; end < len(tag) && tag[end] != '>' && tag[end] != '/' {
			a, after := plainAttribute(tag, end)
			if after < 0 {
				return token{}, false
			}
			t.attrs, end = append(t.attrs, a), after
		}
	}
	return token{}, false
}

// plainAttribute reads the attribute that begins at from and says where it ends; -1 when it is not a plain one.
func plainAttribute(tag []byte, from int) (attr, int) {
	end := plainName(tag, from)
	if end == from || len(tag) < end+2 || tag[end] != '=' || tag[end+1] != '"' {
		return attr{}, -1
	}
	value := tag[end+2:]
	length := bytes.IndexByte(value, '"')
	if length < 0 || bytes.ContainsAny(value[:length], "&<\r") {
		return attr{}, -1
	}
	return attr{name: known(tag[from:end]), value: string(value[:length])}, end + 2 + length + 1
}

// plainName gives the end of the name in ASCII that begins at from, with one prefix at most; from itself when there is none.
func plainName(tag []byte, from int) int {
	prefixed := false
	for at := from; at < len(tag); at++ {
		switch c := tag[at]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_':
		case at > from && (c >= '0' && c <= '9' || c == '-' || c == '.'):
		case at > from && c == ':' && !prefixed:
			prefixed = true
		case c == ':':
			return from
		default:
			return at
		}
	}
	return len(tag)
}

// known is a name as a string: that of the catalogue, where it has one.
func known(name []byte) string {
	if s, ok := wire.names[string(name)]; ok {
		return s
	}
	return string(name)
}

// wireNames are the names of all elements and attributes of c, each as itself.
func wireNames(c *catalogue) map[string]string {
	names := []string{rootElem, metaElem, "SNDR", "SEQN", "DTTM", "TYPE", "STYP", TypeSCHD, TypeFLOP, "FLTR", recsElem, flidElem, subElem, doorID, doorTime}
	note := func(fields []Field) {
		for i := range fields {
			names = append(names, fields[i].Elem, fields[i].Attr)
		}
	}
	for i := range c.lists {
		names = append(names, c.lists[i].Key.Attr)
		note(c.lists[i].Fields)
		note(c.lists[i].Sub)
	}
	elements := c.elements
	for i := range c.references {
		names = append(names, c.references[i].Type)
		elements = slices.Concat(elements, c.references[i].Elements)
	}
	for i := range elements {
		names = append(names, elements[i].Name)
		note(elements[i].Fields)
	}
	out := make(map[string]string, len(names))
	for _, n := range names {
		out[n] = n
	}
	return out
}
