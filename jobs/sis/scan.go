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

// scanner reads one message element by element and refuses everything dictionary 4 #1 to #3 refuses. It stands around
// encoding/xml because that alone takes a second root, text after the root, doubled attributes and any depth. Raw tokens
// are used, so that names are matched as they are written and a stray </MSG> after the root can be told from a wrong one.
type scanner struct {
	text  []byte
	feed  *feed
	dec   *xml.Decoder
	open  []string // names of the open elements
	ended bool     // the root has been closed
	start int64    // where the last token began
	refs  bool     // somewhere stands a reference by number
}

func newScanner(text []byte) *scanner {
	f := &feed{text: text}
	s := &scanner{text: text, feed: f, dec: xml.NewDecoder(f), refs: bytes.Contains(text, []byte("&#"))}
	s.dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is characters already
	return s
}

// next gives the next start tag, end tag or text within the root, and io.EOF after a complete message.
func (s *scanner) next() (xml.Token, error) {
	for {
		s.start = s.dec.InputOffset()
		s.feed.bound(s.start)
		token, err := s.dec.RawToken()
		if err != nil {
			return nil, s.failed(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			return token, s.opened(t)
		case xml.EndElement:
			if s.stray(t) {
				continue
			}
			return token, s.closed(t)
		case xml.CharData:
			if s.halved() {
				return nil, s.malformed("a reference to a character XML forbids")
			}
			if len(s.open) > 0 {
				return token, nil
			}
			if len(bytes.Trim(s.raw(), whiteSpace)) > 0 {
				return nil, s.malformed("text outside the root element")
			}
		case xml.ProcInst:
			if strings.EqualFold(t.Target, "xml") && s.start > 0 {
				return nil, s.malformed("an XML declaration that is not at the beginning")
			}
		case xml.Directive:
			return nil, s.malformed("a document type declaration")
		case xml.Comment:
		default: // encoding/xml gives nil for an empty CDATA section before anything else
			return nil, s.malformed("text outside the root element")
		}
	}
}

func (s *scanner) opened(t xml.StartElement) error {
	name := qualified(t.Name)
	switch {
	case s.ended:
		return s.malformed("a second root element")
	case len(s.open) == 0 && name != "MSG":
		return s.malformed("the root element is not MSG")
	case len(s.open) == maxDepth:
		return s.malformed("more than 100 levels of elements")
	}
	s.open = append(s.open, name)
	if len(t.Attr) == 0 {
		return nil
	}
	switch {
	case doubled(t.Attr):
		return s.malformed("an attribute stands twice")
	case joined(s.raw()):
		return s.malformed("no white space between two attributes")
	case s.halved():
		return s.malformed("a reference to a character XML forbids")
	}
	return nil
}

func (s *scanner) closed(t xml.EndElement) error {
	if len(s.open) == 0 || s.open[len(s.open)-1] != qualified(t.Name) {
		return s.malformed("an end tag without its start tag")
	}
	s.open = s.open[:len(s.open)-1]
	s.ended = len(s.open) == 0
	return nil
}

// stray says that t is the extra </MSG> that was seen after roots.
func (s *scanner) stray(t xml.EndElement) bool { return s.ended && qualified(t.Name) == "MSG" }

func (s *scanner) failed(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case errors.Is(err, io.EOF) && s.ended:
		return io.EOF
	case errors.Is(err, io.EOF):
		return s.malformed("the text ends inside the message")
	case errors.As(err, &syntax):
		return s.malformed(syntax.Msg)
	}
	return s.malformed(err.Error())
}

// maxWhatBytes keeps errors short: there are names in them, which may be megabytes.
const maxWhatBytes = 200

func (s *scanner) malformed(what string) error {
	return fault.At(fault.Malformed, op, shortened(strings.Join(s.open, "/"), maxWhatBytes), s.line(), "%s", shortened(what, maxWhatBytes))
}

func (s *scanner) line() int {
	line, _ := s.dec.InputPos()
	return line
}

// raw is the text of the last token.
func (s *scanner) raw() []byte { return s.text[s.start:s.dec.InputOffset()] }

// root reads up to and with the start tag of MSG.
func (s *scanner) root() error {
	_, err := s.next()
	return err
}

// child gives the next element directly inside the open one, and false at its end. The caller reads each child whole.
func (s *scanner) child() (xml.StartElement, bool, error) {
	for {
		token, err := s.next()
		if err != nil {
			return xml.StartElement{}, false, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return t, true, nil
		case xml.EndElement:
			return xml.StartElement{}, false, nil
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

// doubled says that one attribute stands twice.
func doubled(attrs []xml.Attr) bool {
	const few = 4 // compared one by one; a tag may also have 100,000
	if len(attrs) <= few {
		for i := range attrs {
			for j := range i {
				if attrs[i].Name == attrs[j].Name {
					return true
				}
			}
		}
		return false
	}
	seen := make(map[xml.Name]struct{}, len(attrs))
	for _, a := range attrs {
		seen[a.Name] = struct{}{}
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

// bound sets how far the token that begins at start may reach.
func (f *feed) bound(start int64) {
	f.limit = len(f.text)
	rest := f.text[start:]
	if len(rest) > maxTagBytes && rest[0] == '<' && rest[1] != '!' && rest[1] != '?' {
		f.limit = int(start) + maxTagBytes
	}
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
