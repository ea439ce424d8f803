package sis

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"msgexchange/jobs/fault"
)

// scanner reads one message token by token and refuses everything dictionary 4 #1 to #3 refuses. What is written as nearly all
// is it reads itself (plain); everything else, and all that is wrong, is read by encoding/xml, one token at a time. It stands
// around that because encoding/xml alone takes a second root, text after the root, doubled attributes and any depth, and
// because only raw tokens tell a stray </MSG> after the root from a wrong one.
type scanner struct {
	text    []byte
	start   int      // where the last token began
	pos     int      // where the next one begins
	closes  bool     // the next one is the end of the innermost open element, whose tag was <empty/>
	open    []string // names of the open elements
	ended   bool     // the root has been closed
	refs    bool     // somewhere stands a reference by number
	foreign bool     // encoding/xml reads everything, to compare it with plain

	lines, counted int // how many line breaks there are before counted
}

// token is a start tag, an end tag or text within the root.
type token struct {
	kind  kind
	name  string // of a tag, with its prefix
	attrs []attr
	text  []byte // good until the next token
}

type kind uint8

const (
	opening kind = iota + 1
	closing
	chars
)

type attr struct{ name, value string }

func newScanner(text []byte) *scanner {
	const usualDepth = 8
	return &scanner{text: text, open: make([]string, 0, usualDepth), refs: bytes.Contains(text, []byte("&#"))}
}

// next gives the next token within the root, and io.EOF after a complete message.
func (s *scanner) next() (token, error) {
	for {
		t, err := s.read()
		if err != nil {
			return token{}, err
		}
		switch t.kind {
		case opening:
			return t, s.opened(t)
		case closing:
			if s.stray(t) {
				continue
			}
			return t, s.closed(t)
		case chars:
			if len(s.open) > 0 {
				return t, nil
			}
			if len(bytes.Trim(s.raw(), whiteSpace)) > 0 {
				return token{}, s.malformed("text outside the root element")
			}
		default: // a comment or an instruction
		}
	}
}

// read gives the next token wherever it stands; one without a kind means nothing.
func (s *scanner) read() (token, error) {
	s.start = s.pos
	switch {
	case s.closes:
		s.closes = false
		return token{kind: closing, name: s.open[len(s.open)-1]}, nil
	case s.pos == len(s.text) && s.ended:
		return token{}, io.EOF
	case s.pos == len(s.text):
		return token{}, s.malformed("the text ends inside the message")
	case s.foreign:
	case s.pos == 0 && bytes.HasPrefix(s.text, []byte(usualDeclaration)):
		s.pos = len(usualDeclaration)
		return token{}, nil
	default:
		if t, ok := s.plain(); ok {
			return t, nil
		}
	}
	return s.odd()
}

// odd reads one token with encoding/xml.
func (s *scanner) odd() (token, error) {
	dec := xml.NewDecoder(newFeed(s.text, s.start))
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is characters already
	raw, err := dec.RawToken()
	s.pos = s.start + int(dec.InputOffset())
	if err != nil {
		return token{}, s.failed(err)
	}
	switch t := raw.(type) {
	case xml.StartElement:
		s.closes = bytes.HasSuffix(s.raw(), []byte("/>"))
		return token{kind: opening, name: qualified(t.Name), attrs: attributes(t.Attr)}, nil
	case xml.EndElement:
		return token{kind: closing, name: qualified(t.Name)}, nil
	case xml.CharData, nil: // nil is an empty CDATA section
		if s.halved() {
			return token{}, s.malformed("a reference to a character XML forbids")
		}
		text, _ := raw.(xml.CharData)
		return token{kind: chars, text: text}, nil
	case xml.ProcInst:
		if strings.EqualFold(t.Target, "xml") && s.start > 0 {
			return token{}, s.malformed("an XML declaration that is not at the beginning")
		}
	case xml.Directive:
		return token{}, s.malformed("a document type declaration")
	}
	return token{}, nil
}

func (s *scanner) opened(t token) error {
	switch {
	case s.ended:
		return s.malformed("a second root element")
	case len(s.open) == 0 && t.name != "MSG":
		return s.malformed("the root element is not MSG")
	case len(s.open) == maxDepth:
		return s.malformed("more than 100 levels of elements")
	}
	s.open = append(s.open, t.name)
	if len(t.attrs) == 0 {
		return nil
	}
	switch {
	case doubled(t.attrs):
		return s.malformed("an attribute stands twice")
	case joined(s.raw()):
		return s.malformed("no white space between two attributes")
	case s.halved():
		return s.malformed("a reference to a character XML forbids")
	}
	return nil
}

func (s *scanner) closed(t token) error {
	if len(s.open) == 0 || s.open[len(s.open)-1] != t.name {
		return s.malformed("an end tag without its start tag")
	}
	s.open = s.open[:len(s.open)-1]
	s.ended = len(s.open) == 0
	return nil
}

// stray says that t is the extra </MSG> that was seen after roots.
func (s *scanner) stray(t token) bool { return s.ended && t.name == "MSG" }

// failed is an error of encoding/xml as ours.
func (s *scanner) failed(err error) error {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return s.malformed(syntax.Msg)
	}
	return s.malformed(err.Error())
}

// maxWhatBytes keeps errors short: there are names in them, which may be megabytes.
const maxWhatBytes = 200

func (s *scanner) malformed(what string) error {
	return fault.At(fault.Malformed, op, shortened(strings.Join(s.open, "/"), maxWhatBytes), s.line(), "%s", shortened(what, maxWhatBytes))
}

// line is where the next token begins, from 1.
func (s *scanner) line() int {
	s.lines += bytes.Count(s.text[s.counted:s.pos], []byte{'\n'})
	s.counted = s.pos
	return 1 + s.lines
}

// raw is the text of the last token.
func (s *scanner) raw() []byte { return s.text[s.start:s.pos] }

// root reads up to and with the start tag of MSG.
func (s *scanner) root() error {
	_, err := s.next()
	return err
}

// child gives the next element directly inside the open one, and false at its end. The caller reads each child whole.
func (s *scanner) child() (token, bool, error) {
	for {
		t, err := s.next()
		if err != nil || t.kind != chars {
			return t, t.kind == opening, err
		}
	}
}

// skip reads to the end of the element whose start tag was read last.
func (s *scanner) skip() error { return s.leave(len(s.open)) }

// leave reads to the end of the open element at depth, counted from 1.
func (s *scanner) leave(depth int) error {
	for len(s.open) >= depth {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// finish reads what follows the root.
func (s *scanner) finish() error {
	if _, err := s.next(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func qualified(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

func attributes(attrs []xml.Attr) []attr {
	if len(attrs) == 0 {
		return nil
	}
	out := make([]attr, len(attrs))
	for i, a := range attrs {
		out[i] = attr{qualified(a.Name), a.Value}
	}
	return out
}

// doubled says that one attribute stands twice.
func doubled(attrs []attr) bool {
	const few = 4 // compared one by one; a tag may also have 100,000
	if len(attrs) <= few {
		for i := range attrs {
			for j := range i {
				if attrs[i].name == attrs[j].name {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[string]struct{}, len(attrs))
	for _, a := range attrs {
		seen[a.name] = struct{}{}
	}
	return len(seen) < len(attrs)
}

// joined says that in a start tag no white space follows an attribute's closing quote: a="1"b="2".
func joined(tag []byte) bool {
	for quote, i := byte(0), 0; i < len(tag); i++ {
		switch c := tag[i]; {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
			if i+1 < len(tag) && !strings.ContainsRune(whiteSpace+"/>", rune(tag[i+1])) {
				return true
			}
		}
	}
	return false
}

// The halves of surrogate pairs, which are no characters.
const firstSurrogate, lastSurrogate = 0xD800, 0xDFFF

// halved says that the last token refers by number to half a surrogate pair, of which encoding/xml makes U+FFFD. In a CDATA
// section a reference is only text.
func (s *scanner) halved() bool {
	if !s.refs || bytes.HasPrefix(s.raw(), []byte("<![CDATA[")) {
		return false
	}
	for _, ref := range bytes.Split(s.raw(), []byte("&#"))[1:] {
		number, _, _ := bytes.Cut(ref, []byte{';'})
		base := 10
		if hex, found := bytes.CutPrefix(number, []byte{'x'}); found {
			number, base = hex, 16
		}
		if n, err := strconv.ParseUint(string(number), base, 32); err == nil && n >= firstSurrogate && n <= lastSurrogate {
			return true
		}
	}
	return false
}

// feed hands the text to encoding/xml and stops inside a start tag that is too long, whose attributes would fill memory.
type feed struct {
	text       []byte
	pos, limit int
}

var errTag = errors.New("a start tag is too long")

// newFeed begins at the token that begins at start.
func newFeed(text []byte, start int) *feed {
	f := &feed{text: text, pos: start, limit: len(text)}
	rest := text[start:]
	if len(rest) > maxTagBytes && rest[0] == '<' && rest[1] != '!' && rest[1] != '?' {
		f.limit = start + maxTagBytes
	}
	return f
}

// ReadByte is what encoding/xml calls.
func (f *feed) ReadByte() (byte, error) {
	if f.pos >= f.limit {
		if f.pos < len(f.text) {
			return 0, errTag
		}
		return 0, io.EOF
	}
	f.pos++
	return f.text[f.pos-1], nil
}

// Read is there because encoding/xml asks for a reader; it uses ReadByte.
func (f *feed) Read(p []byte) (int, error) {
	b, err := f.ReadByte()
	if err != nil || len(p) == 0 {
		return 0, err
	}
	p[0] = b
	return 1, nil
}
