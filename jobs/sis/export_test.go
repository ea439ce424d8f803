package sis

import (
	"errors"
	"fmt"
	"io"
)

// Tokens gives what the scanner makes of a text, one line a token, its error last; with foreign all of it by encoding/xml.
func Tokens(text []byte, foreign bool) (all []string) {
	text, err := admit(text)
	if err != nil {
		return []string{err.Error()}
	}
	s := newScanner(text)
	s.foreign = foreign
	for {
		t, err := s.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, fmt.Sprintf("%d…%d line %d: %d %q %q %q", s.start, s.pos, s.line(), t.kind, t.name, t.attrs, t.text))
	}
}
