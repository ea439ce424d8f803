package sis

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"msgexchange/jobs/fault"
)

// Limits of a message (dictionary 4 #1). The last four are ours: they bound memory whatever is sent, far above any message seen.
const (
	MaxBytes    = 10 << 20  // of the text as UTF-8
	maxDepth    = 100       // levels of elements
	maxTagBytes = 1 << 20   // of one start tag
	maxElements = 100_000   // in one record
	maxParts    = 150_000   // records and list entries in one message
	maxUnknown  = 1_000_000 // unknown elements of the records of one message
)

const op = "decode"

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\uFEFF"

// admit refuses text that cannot be XML at all, before anything reads it, and cuts off a leading U+FEFF.
func admit(text []byte) ([]byte, error) {
	if len(text) > MaxBytes {
		return nil, fault.New(fault.Malformed, op, "the text has %d bytes, more than %d", len(text), MaxBytes)
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if len(bytes.TrimLeft(text, whiteSpace)) == 0 {
		return nil, fault.New(fault.Malformed, op, "the text is blank")
	}
	if at, what := forbidden(text); what != "" {
		return nil, fault.At(fault.Malformed, op, "", 1+bytes.Count(text[:at], []byte{'\n'}), "%s", what)
	}
	return text, nil
}

// forbidden finds the first thing in text that is no XML character; "" when all are.
func forbidden(text []byte) (at int, what string) {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < utf8.RuneSelf || c == '\n' || c == '\r' || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return i, "bytes that are not UTF-8"
		case r < ' ' || r == '\uFFFE' || r == '\uFFFF':
			return i, fmt.Sprintf("the character %U, which XML forbids", r)
		}
		i += size
	}
	return 0, ""
}
