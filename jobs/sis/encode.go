package sis

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"msgexchange/jobs/message"
)

// Encode writes a SCHD, FLOP or reference message as the airport database would, by the catalogue entry m.Spec; a nil zone is UTC.
// What Decode can give is written so that Decode gives it again (Hash apart). Anything else has no meaning on the wire:
// without Spec there is no body, fields and lists the catalogue does not know are left out, and so are seconds.
func Encode(m Message, zone *time.Location) []byte {
	e := encoder{zone: orUTC(zone), buf: []byte(declaration + "\n")}
	e.envelope(m.Meta)
	if m.Spec != nil {
		e.body(m)
	}
	e.close(rootElem)
	return append(e.buf, '\n')
}

const (
	declaration = `<?xml version="1.0" encoding="UTF-8"?>`
	rootElem    = "MSG"
)

// encoder appends XML.
type encoder struct {
	buf  []byte
	zone *time.Location
}

// envelope opens the root and writes META; the caller closes the root.
func (e *encoder) envelope(m message.Meta) {
	e.buf = append(e.buf, `<MSG xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="unisysaodbsis.xsd">`...)
	e.open(metaElem)
	e.text("SNDR", m.SNDR)
	e.text("SEQN", fmt.Sprintf("%06d", m.SEQN))
	e.text("DTTM", m.DTTM.In(e.zone).Format("20060102150405"))
	e.text("TYPE", m.TYPE)
	e.text("STYP", m.STYP)
	e.close(metaElem)
}

func (e *encoder) body(m Message) {
	switch {
	case m.Spec.TYPE == TypeFLOP:
		for i := range m.Records {
			e.flop(&m.Records[i], m.Spec)
		}
		return
	case m.Spec.Reference != nil:
		if m.Reference != nil {
			e.reference(m.Reference)
		}
		return
	}
	e.open(m.Spec.TYPE)
	e.text(recsElem, fmt.Sprint(len(m.Records)))
	for i := range m.Records {
		e.fltr(&m.Records[i])
	}
	e.close(m.Spec.TYPE)
}

func (e *encoder) fltr(r *Record) {
	e.open("FLTR")
	e.text(flidElem, fmt.Sprint(r.FLID))
	for i := range wire.elements {
		e.element(r, &wire.elements[i])
	}
	e.ext(r.Ext)
	e.close("FLTR")
}

func (e *encoder) flop(r *Record, k *Kind) {
	e.open(TypeFLOP)
	e.text(flidElem, fmt.Sprint(r.FLID))
	for i := range k.Payload {
		e.payload(r, &k.Payload[i])
	}
	e.close(TypeFLOP)
}

// payload writes an element a FLOP must have, also when r says nothing: then what means no change.
func (e *encoder) payload(r *Record, p *Payload) {
	before := len(e.buf)
	if p.Absent == Delete {
		e.text(p.Name, "")
	} else {
		e.element(r, p.Element)
	}
	switch {
	case p.Absent != Refuse || len(e.buf) > before:
	case p.Door:
		e.door(Field{Elem: p.Name, JSON: noDoor}, Value{})
	default:
		e.text(p.Name, "")
	}
}

// element writes what r says of one element; nothing when it says nothing.
func (e *encoder) element(r *Record, el *Element) {
	if el.List != nil {
		if l, ok := r.Lists[el.List.Name]; ok {
			e.list(l, el.List)
		}
		return
	}
	if el.Door {
		e.doors(r, el)
		return
	}
	if _, ok := r.Fields[el.Fields[0].Name]; ok {
		e.fields(el.Name, nil, el.Fields, r.Fields)
		e.close(el.Name)
	}
}

func (e *encoder) list(l List, spec *ListSpec) {
	if l.Clear && len(l.Entries) == 0 {
		e.text(spec.Elem, "")
	}
	for _, entry := range l.Entries {
		key := TextValue(entry.Key)
		e.fields(spec.Elem, []Field{spec.Key}, spec.Fields, with(entry.Fields, spec.Key.Name, key))
		for _, sub := range entry.Sub {
			e.fields(subElem, nil, spec.Sub, sub)
			e.close(subElem)
		}
		e.close(spec.Elem)
	}
}

func with(f Fields, name string, v Value) Fields {
	out := Fields{name: v}
	for k, v := range f {
		out[k] = v
	}
	return out
}

// fields opens elem with the attributes among specs and writes the text and the children among them; the caller closes it.
func (e *encoder) fields(elem string, key, specs []Field, values Fields) {
	e.buf = append(append(e.buf, '<'), elem...)
	all := append(key[:len(key):len(key)], specs...)
	for i := range all {
		if v := values[all[i].Name]; all[i].Attr != "" && !v.IsEmpty() {
			e.buf = append(append(append(e.buf, ' '), all[i].Attr...), `="`...)
			e.escape(all[i].Form.write(nil, v, e.zone))
			e.buf = append(e.buf, '"')
		}
	}
	e.buf = append(e.buf, '>')
	for i := range all {
		v, ok := values[all[i].Name]
		switch {
		case !ok || all[i].Attr != "":
		case all[i].Elem == "" || all[i].Elem == elem:
			e.escape(all[i].Form.write(nil, v, e.zone))
		default:
			e.text(all[i].Elem, string(all[i].Form.write(nil, v, e.zone)))
		}
	}
}

// reference writes a list of reference data.
func (e *encoder) reference(r *Reference) {
	e.text(recsElem, fmt.Sprint(len(r.Records)))
	for i := range r.Records {
		rec := &r.Records[i]
		e.open(r.Spec.Type)
		e.text(r.Spec.Key.Elem, rec.Key)
		for j := range r.Spec.Elements[1:] {
			el := &r.Spec.Elements[1+j]
			switch v, ok := rec.Fields[el.Fields[0].Name]; {
			case el.Card == "*":
				for _, entry := range rec.Lists[el.JSON()] {
					e.fields(el.Name, nil, el.Fields, entry)
					e.close(el.Name)
				}
			case ok:
				e.text(el.Name, string(el.Fields[0].Form.write(nil, v, e.zone)))
			}
		}
		e.close(r.Spec.Type)
	}
}

// doors writes a PORT for each door time r speaks of.
func (e *encoder) doors(r *Record, el *Element) {
	for _, f := range el.Fields {
		if v, ok := r.Fields[f.Name]; ok {
			e.door(f, v)
		}
	}
}

// noDoor is a POID that means neither door.
const noDoor = "-"

func (e *encoder) door(f Field, v Value) {
	e.open(f.Elem)
	e.text(doorTime, string(f.Form.write(nil, v, e.zone)))
	e.text(doorID, strings.ToUpper(f.JSON))
	e.close(f.Elem)
}

func (e *encoder) open(elem string) { e.buf = append(append(append(e.buf, '<'), elem...), '>') }

func (e *encoder) close(elem string) { e.buf = append(append(append(e.buf, "</"...), elem...), '>') }

func (e *encoder) text(elem, text string) {
	e.open(elem)
	e.escape([]byte(text))
	e.close(elem)
}

// escape appends character data.
func (e *encoder) escape(text []byte) {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, text) // a buffer takes everything
	e.buf = append(e.buf, b.Bytes()...)
}
