package sis

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteCatalogue writes the catalogue as a page of Markdown: docs/catalogue.md is its output.
func WriteCatalogue(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(`# Catalogue of messages

Generated from the catalogue in jobs/sis by go test ./jobs/sis -run TestCataloguePage -update; do not edit.

How to read it: a name like fdiv.ddes is ddes inside the group fdiv of the flight JSON. "!" refuses the whole message
(DEAD, PROTOCOL). Max is the column size of the system that was replaced; longer texts are neither cut nor refused.

`)
	writeKinds(&b)
	writeElements(&b)
	writeLists(&b)
	writeReferences(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func writeKinds(b *bytes.Buffer) {
	b.WriteString("## Kinds about flights\n\n| Kind | Mode | Payload | Absent | Empty | Further rules | Meaning |\n|---|---|---|---|---|---|---|\n")
	for k := range Catalogue() {
		if k.Reference != nil {
			continue
		}
		var names, absent, empty []string
		for _, p := range k.Payload {
			names = append(names, p.Name)
			absent = append(absent, string(p.Absent))
			empty = append(empty, string(p.Empty))
		}
		if k.Payload == nil {
			names, absent, empty = []string{"FLTR *"}, []string{string(Keep)}, []string{string(Clear)}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", k.Name, k.Mode, strings.Join(names, " "),
			same(absent), same(empty), k.Rules, k.Meaning)
	}
}

// same writes equal words once.
func same(words []string) string {
	for _, w := range words {
		if w != words[0] {
			return strings.Join(words, ", ")
		}
	}
	return words[0]
}

func writeElements(b *bytes.Buffer) {
	b.WriteString("\n## Flight record\n\nFLID is the key of the record. Card.: 1 = must be there and filled, ? = at most one, * = any number.\n\n" +
		"| Element | Card. | Value | Form | Type | Max | Only | Meaning |\n|---|---|---|---|---|---|---|---|\n")
	for i := range wire.elements {
		e := &wire.elements[i]
		if e.List != nil {
			fmt.Fprintf(b, "| %s | %s | list %s | | | | | %s |\n", e.Name, e.Card, e.List.Name, e.Meaning)
			continue
		}
		for j := range e.Fields {
			writeField(b, e.Name, e.Card, &e.Fields[j])
		}
	}
}

func writeField(b *bytes.Buffer, elem, card string, f *Field) {
	place := elem
	if f.Attr != "" {
		place = strings.TrimPrefix(elem+"/@"+f.Attr, "/")
	}
	size := ""
	if f.Max > 0 {
		size = fmt.Sprint(f.Max)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n",
		place, card, f.Name, f.Form, f.Type(), size, strings.Join(f.OneOf, " "), f.Meaning)
}

func writeLists(b *bytes.Buffer) {
	b.WriteString("\n## Lists\n\nThe first row of each list is its key. An FLTR replaces every list but those of mode PATCH.\n")
	for i := range wire.lists {
		l := &wire.lists[i]
		fmt.Fprintf(b, "\n### %s: %s\n\nMode of its FLOP: %s. Order: by %s.\n\n", l.Elem, l.Meaning, l.Mode, l.Key.Name)
		b.WriteString("| Place | Card. | Value | Form | Type | Max | Only | Meaning |\n|---|---|---|---|---|---|---|---|\n")
		writeEntryField(b, "", &l.Key)
		for j := range l.Fields {
			writeEntryField(b, "", &l.Fields[j])
		}
		for j := range l.Sub {
			writeEntryField(b, subElem+"/", &l.Sub[j])
		}
	}
}

func writeReferences(b *bytes.Buffer) {
	b.WriteString("\n## Reference data\n\nEach list has five kinds:\n\n| Kind | Mode | Further rules | Meaning |\n|---|---|---|---|\n")
	for k := range Catalogue() {
		if k.Reference == &wire.references[0] {
			_, meaning, _ := strings.Cut(k.Meaning, ": ")
			fmt.Fprintf(b, "| *LIST*-%s | %s | %s | %s |\n", k.STYP, k.Mode, k.Rules, meaning)
		}
	}
	b.WriteString(`
A record is complete: an element that is missing or empty has no value. The first row of each list is its key; the same key
twice, a value of the wrong form or a single element twice refuses the message. A record without its key is passed over and a
wrong RECS goes through; both are remarked on. Without any record RECS must say 0, and a complete list of which no record has
a key is refused. An element with Card. * gives an array: of texts, or of objects where there is more than its text.
`)
	for i := range wire.references {
		s := &wire.references[i]
		fmt.Fprintf(b, "\n### %s: %s\n\n", s.Type, s.Meaning)
		if s.Personal {
			b.WriteString("About persons: nothing of it is logged.\n\n")
		}
		b.WriteString("| Place | Card. | Value | Form | Type | Max | Only | Meaning |\n|---|---|---|---|---|---|---|---|\n")
		for j := range s.Elements {
			writeReferenceElement(b, &s.Elements[j])
		}
	}
}

func writeReferenceElement(b *bytes.Buffer, e *Element) {
	for i := range e.Fields {
		f := e.Fields[i]
		if e.Card != "*" {
			writeField(b, e.Name, e.Card, &f)
			continue
		}
		place := e.Name
		if f.Elem != "" {
			place += "/" + f.Elem
		}
		if f.Name = e.JSON() + "[]." + f.Name; len(e.Fields) == 1 {
			f.Name = e.JSON() + "[]"
		}
		writeField(b, place, e.Card, &f)
	}
}

func writeEntryField(b *bytes.Buffer, inside string, f *Field) {
	card, place := "?", f.Elem
	if f.Mandatory {
		card = "1"
	}
	if place == "" && f.Attr == "" {
		place = "(text)"
	}
	writeField(b, inside+place, card, f)
}
