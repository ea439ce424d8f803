package sis

import (
	"fmt"
	"strconv"

	"msgexchange/jobs/fault"
)

// Reference is what a message says about one list of reference data (dictionary 9). Message.Spec.Mode says what becomes of
// the records; a store applies all of them or none:
//
//   - Complete: they are all there are; records with other keys go;
//   - Put: each is added, or takes the place of the one with its key;
//   - Drop: those with these keys go; a key that is not known is no error.
type Reference struct {
	Spec *ReferenceSpec
	// Records are in the order of the text, each key once. Each is complete: what it does not have has no value.
	Records []ReferenceRecord
	// Remarks are what was not as it should be and is to be logged: a wrong RECS, records without a key. Nil when all was well.
	// Nothing in them was written by the sender.
	Remarks []string
}

// ReferenceRecord is one record of a list.
type ReferenceRecord struct {
	// Key is the text of its key, case as sent; a number in its shortest form.
	Key string
	// Fields are the filled single values but the key, by lower-case name. Nil in a Drop.
	Fields Fields
	// Lists are the filled entries of the elements that may repeat, by lower-case name, in the order of the text; an entry of
	// plain text has the one field "text". Nil when there are none, and in a Drop.
	Lists map[string][]Fields
}

// referenceReader gathers the records of a reference message.
type referenceReader struct {
	records  []ReferenceRecord
	keys     map[string]int // which record has it, from 1
	keyless  int
	declared string // RECS
}

const recsElem = "RECS"

// declaredRecords keeps RECS of a reference message, which is compared at the end and refuses nothing.
func (d *decoder) declaredRecords(start token) error {
	n, err := d.record(start, "MSG", 0)
	if n != nil {
		d.reference.declared = n.text
	}
	return err
}

// referenceRecord reads one record of a list. Its error is about the text; broken content rules go to d.broken.
func (d *decoder) referenceRecord(start token) error {
	n, err := d.record(start, "MSG", d.bodies)
	if n == nil || err != nil {
		return err
	}
	r, err := d.recordOf(d.message.Spec, n)
	switch ref := &d.reference; {
	case err != nil:
		d.broken = err
	case r.Key == "":
		ref.keyless++
	case ref.keys[r.Key] == 0:
		ref.records = append(ref.records, r)
		if ref.keys == nil {
			ref.keys = map[string]int{}
		}
		ref.keys[r.Key] = d.bodies
	case d.message.Spec.Mode != Drop:
		d.broken = n.broken(d.message.Spec.Reference.Key.Elem, "the key is that of record %d", ref.keys[r.Key])
	}
	return nil
}

// recordOf reads a record; one without its key says nothing.
func (d *decoder) recordOf(kind *Kind, n *node) (ReferenceRecord, error) {
	spec := kind.Reference
	key, err := d.field(spec.Key, n)
	if err != nil || key.IsEmpty() {
		return ReferenceRecord{}, err
	}
	r := ReferenceRecord{Key: keyText(key)}
	if kind.Mode == Drop {
		return r, nil
	}
	r.Fields = Fields{}
	for i := range spec.Elements[1:] {
		e := &spec.Elements[1+i]
		if e.Card == "*" {
			err = d.repeated(&r, e, n)
		} else {
			err = d.filled(r.Fields, &e.Fields[0], n)
		}
		if err != nil {
			return ReferenceRecord{}, err
		}
	}
	return r, nil
}

// filled reads a single value that may be missing or empty: both are none.
func (d *decoder) filled(out Fields, f *Field, n *node) error {
	v, err := d.field(f, n)
	if err == nil && !v.IsEmpty() {
		out[f.Name] = v
	}
	return err
}

// repeated reads the filled ones of an element that may repeat.
func (d *decoder) repeated(r *ReferenceRecord, e *Element, n *node) error {
	for _, kid := range n.kids {
		if kid.name != e.Name {
			continue
		}
		entry, err := d.fields(e.Fields, kid)
		if err != nil {
			return err
		}
		if entry == nil {
			continue
		}
		if err := d.count(kid); err != nil {
			return err
		}
		if r.Lists == nil {
			r.Lists = map[string][]Fields{}
		}
		r.Lists[e.JSON()] = append(r.Lists[e.JSON()], entry)
	}
	return nil
}

// outcomeOfReference is what a sound text says. A list without any record is believed only when RECS says so too, for it
// would take away everything.
func (d *decoder) outcomeOfReference(kind *Kind) (*Reference, error) {
	r, elem := &d.reference, kind.TYPE
	recs, err := strconv.Atoi(r.declared)
	declaredNone := err == nil && recs == 0
	switch {
	case d.bodies == 0 && !declaredNone:
		return nil, fault.At(fault.Malformed, op, "MSG/"+elem, d.end, "it is missing")
	case d.broken != nil:
		return nil, d.broken
	case kind.Mode == Complete && len(r.records) == 0 && r.keyless > 0:
		return nil, fault.At(fault.Protocol, op, "MSG/"+elem, d.end, "no record has its key %s", kind.Reference.Key.Elem)
	}
	out := &Reference{Spec: kind.Reference, Records: r.records}
	switch {
	case r.declared == "":
	case err != nil:
		out.Remarks = append(out.Remarks, "RECS is not a number")
	case recs != d.bodies:
		out.Remarks = append(out.Remarks, fmt.Sprintf("RECS is %d and there are %d %s", recs, d.bodies, elem))
	}
	if r.keyless > 0 {
		out.Remarks = append(out.Remarks, fmt.Sprintf("%d %s without %s passed over", r.keyless, elem, kind.Reference.Key.Elem))
	}
	return out, nil
}

// AppendJSON appends r, a record of s, as a JSON object in wire order, the key first: values as AppendJSON writes them, an
// element that may repeat as an array of texts, or of objects where it has more than a text.
func (s *ReferenceSpec) AppendJSON(dst []byte, r ReferenceRecord) []byte {
	dst = AppendJSON(appendName(append(dst, '{'), s.Key.JSON), s.keyValue(r), nil)
	for i := range s.Elements[1:] {
		e := &s.Elements[1+i]
		if e.Card != "*" {
			dst = appendValues(dst, e.Fields, r.Fields, nil)
			continue
		}
		entries, ok := r.Lists[e.JSON()]
		if !ok {
			continue
		}
		dst = append(appendName(dst, e.JSON()), '[')
		for _, entry := range entries {
			if dst = separate(dst); len(e.Fields) == 1 {
				dst = AppendJSON(dst, entry[textMember], nil)
				continue
			}
			dst = append(appendValues(append(dst, '{'), e.Fields, entry, nil), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// keyValue is the key of r as a value.
func (s *ReferenceSpec) keyValue(r ReferenceRecord) Value {
	if s.Key.Type() == Number {
		if n, err := strconv.ParseInt(r.Key, 10, 64); err == nil {
			return NumberValue(n)
		}
	}
	return TextValue(r.Key)
}
