package simulator

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"
)

// element is one XML element: text or children, never both.
type element struct {
	name  string
	attrs []string // name, value, name, value
	text  string
	kids  []element
}

// el is an element with text.
func el(name, text string) element { return element{name: name, text: text} }

// num is an element with a number.
func num[N int | int64](name string, n N) element {
	return el(name, strconv.FormatInt(int64(n), 10))
}

// when is an element with a date-time; the zero time makes it empty.
func when(name string, t time.Time) element { return el(name, wireTime(t)) }

// group is an element with children.
func group(name string, kids ...element) element { return element{name: name, kids: kids} }

// numbered is a list entry with its number.
func numbered(name, attr string, n int, kids ...element) element {
	return element{name: name, attrs: []string{attr, strconv.Itoa(n)}, kids: kids}
}

// filled drops the elements that say nothing.
func filled(in ...element) []element {
	out := make([]element, 0, len(in))
	for _, e := range in {
		if e.text != "" || len(e.kids) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// wireTime writes ddMMMyyHHmm in the zone t carries, and nothing for the zero time (dictionary 3).
func wireTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strings.ToUpper(t.Format("02Jan061504"))
}

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	rootOpen    = `<MSG xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="unisysaodbsis.xsd">` + "\n"
	rootClose   = "</MSG>\n"
)

// document writes a whole message, laid out as the airport database does.
func document(parts []element) string {
	var b strings.Builder
	b.WriteString(declaration)
	b.WriteString(rootOpen)
	for _, e := range parts {
		e.write(&b, 1)
	}
	b.WriteString(rootClose)
	return b.String()
}

func (e element) write(b *strings.Builder, depth int) {
	indent(b, depth)
	b.WriteString("<" + e.name)
	for i := 0; i+1 < len(e.attrs); i += 2 {
		b.WriteString(" " + e.attrs[i] + `="`)
		escape(b, e.attrs[i+1])
		b.WriteByte('"')
	}
	b.WriteByte('>')
	if len(e.kids) > 0 {
		b.WriteByte('\n')
		for _, k := range e.kids {
			k.write(b, depth+1)
		}
		indent(b, depth)
	} else {
		escape(b, e.text)
	}
	b.WriteString("</" + e.name + ">\n")
}

func indent(b *strings.Builder, depth int) {
	for range depth {
		b.WriteString("  ")
	}
}

// escape cannot fail: a strings.Builder takes everything.
func escape(b *strings.Builder, s string) { _ = xml.EscapeText(b, []byte(s)) }
