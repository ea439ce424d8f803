package store

import (
	"bytes"
	"errors"
	"fmt"
)

// errJSON says that a text is not the JSON that PostgreSQL keeps for us.
var errJSON = errors.New("unexpected JSON")

// scanner walks through a JSON text once, without making anything of what it passes. It is for texts that PostgreSQL has
// checked, where it costs a fifth of encoding/json; it reads no further than it needs to and checks little.
type scanner struct {
	text []byte
	pos  int
}

// object calls member for each member; member must take the value (value, object or array).
func (s *scanner) object(member func(name []byte) error) error {
	return s.elements('{', '}', func() error {
		name := s.value()
		if len(name) < 2 || name[0] != '"' || !s.skip(':') {
			return s.fail()
		}
		return member(name[1 : len(name)-1])
	})
}

// array calls element before each element; element must take it.
func (s *scanner) array(element func() error) error { return s.elements('[', ']', element) }

func (s *scanner) elements(open, end byte, element func() error) error {
	if !s.skip(open) {
		return s.fail()
	}
	if s.skip(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch {
		case s.skip(','):
		case s.skip(end):
			return nil
		default:
			return s.fail()
		}
	}
}

// value takes one whole value and gives its text; empty when there is none.
func (s *scanner) value() []byte {
	first := s.peek()
	start := s.pos
	switch first {
	case '"':
		s.str()
	case '{', '[':
		s.nested()
	default:
		s.literal()
	}
	return s.text[start:s.pos]
}

// nested passes an object or an array with everything inside it.
func (s *scanner) nested() {
	for depth := 0; s.pos < len(s.text); {
		switch s.text[s.pos] {
		case '"':
			s.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.pos++; depth == 0 {
			return
		}
	}
}

// literal passes a number, true, false or null.
func (s *scanner) literal() {
	for s.pos < len(s.text) && bytes.IndexByte([]byte(",]} \t\r\n"), s.text[s.pos]) < 0 {
		s.pos++
	}
}

// str passes a string; it begins at the quote.
func (s *scanner) str() {
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch s.text[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return
		}
	}
	s.pos = len(s.text)
}

// skip passes c, if that comes next.
func (s *scanner) skip(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// peek is what comes next; 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) fail() error { return fmt.Errorf("%w at byte %d of %d", errJSON, s.pos, len(s.text)) }
