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
	_, err := w.Write(b.Bytes())
	return err
}

func writeKinds(b *bytes.Buffer) {
	b.WriteString("## Kinds\n\n| Kind | Mode | Payload | Absent | Empty | Further rules | Meaning |\n|---|---|---|---|---|---|---|\n")
	for k := range Catalogue() {
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
