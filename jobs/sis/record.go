package sis

import "slices"

const flidElem = "FLID"

// fltr reads a flight record: filled sets, empty clears, absent says nothing, a list replaces (dictionary 5).
func (d *decoder) fltr(n *node) (Record, error) {
	scalars, unknown := n.census()
	rec, err := d.newRecord(n, scalars)
	if err == nil {
		err = d.unknown(&rec, n, unknown)
	}
	if err != nil {
		return Record{}, err
	}
	doors := false
	for _, kid := range n.kids {
		e := wire.byElem[kid.name]
		switch {
		case e == nil:
		case e.List != nil:
			if _, done := rec.Lists[e.List.Name]; !done {
				err = d.list(&rec, &Payload{Element: e, Empty: Clear}, n.named(e.Name))
			}
		case e.Door:
			if !doors {
				err = d.doors(&rec, &Payload{Element: e, Empty: Clear}, n.named(e.Name))
			}
			doors = true
		default:
			err = d.scalars(&rec, e, kid)
		}
		if err != nil {
			return Record{}, err
		}
	}
	return rec, complete(&rec, n)
}

// census counts the values of a flight record and the elements the catalogue does not know, so that what holds them is made
// once and not larger than it must be: there may be 70,000 records.
func (n *node) census() (scalars, unknown int) {
	for _, kid := range n.kids {
		switch e := wire.byElem[kid.name]; {
		case e != nil:
			scalars += len(e.Fields)
		case kid.name != flidElem:
			unknown++
		}
	}
	return min(scalars, len(wire.scalars)), unknown
}

// unknown keeps what the catalogue does not know.
func (d *decoder) unknown(rec *Record, n *node, count int) error {
	if count == 0 {
		return nil
	}
	if d.strangers += count; d.strangers > maxUnknown {
		return n.broken("", "more than %d unknown elements in the records of a message", maxUnknown)
	}
	const few = 64 // of different names; the same one may stand 100,000 times
	ext := make(members, min(count, few))
	for _, kid := range n.kids {
		if wire.byElem[kid.name] == nil && kid.name != flidElem {
			ext.add(kid.name, kid.json())
		}
	}
	ext.close()
	rec.Ext = ext
	return nil
}

// complete says whether every mandatory value is there and filled.
func complete(rec *Record, n *node) error {
	for i := range wire.scalars {
		f := &wire.scalars[i]
		if !f.Mandatory {
			continue
		}
		if v, ok := rec.Fields[f.Name]; !ok || v.IsEmpty() {
			return n.broken(f.Elem, "it is missing or empty")
		}
	}
	return nil
}

// flop reads one change to one flight: the payload elements of its kind, and nothing else (dictionary 7).
func (d *decoder) flop(n *node) (Record, error) {
	scalars := 0
	for _, p := range d.message.Spec.Payload {
		scalars += len(p.Fields)
	}
	rec, err := d.newRecord(n, scalars)
	if err != nil {
		return Record{}, err
	}
	for i := range d.message.Spec.Payload {
		p := &d.message.Spec.Payload[i]
		switch nodes := n.named(p.Name); {
		case len(nodes) == 0:
			err = absent(&rec, p, n)
		case d.message.Spec.Mode == Remove:
			err = remove(&rec, nodes)
		case p.List != nil:
			err = d.list(&rec, p, nodes)
		case p.Door:
			err = d.doors(&rec, p, nodes)
		default:
			err = d.single(&rec, p, nodes)
		}
		if err != nil {
			return Record{}, err
		}
	}
	bind(rec.Fields, d.message.Spec)
	return rec, nil
}

// newRecord reads FLID and makes room for that many single values.
func (d *decoder) newRecord(n *node, scalars int) (Record, error) {
	kid, err := n.only(flidElem)
	if err != nil {
		return Record{}, err
	}
	if kid == nil || kid.text == "" {
		return Record{}, n.broken(flidElem, "it is missing or empty")
	}
	v, err := FormID.read(kid.text, d.zone)
	if err != nil {
		return Record{}, kid.broken("", "%w", err)
	}
	if v.Num == 0 {
		return Record{}, kid.broken("", "0 names no flight")
	}
	return Record{FLID: v.Num, Fields: make(Fields, scalars)}, nil
}

// absent applies the column Absent.
func absent(rec *Record, p *Payload, n *node) error {
	switch p.Absent {
	case Refuse:
		return n.broken(p.Name, "it is missing")
	case Clear:
		clearAll(rec.Fields, p.Element)
	case Delete:
		rec.Delete = true
	case Keep:
	}
	return nil
}

func clearAll(f Fields, e *Element) {
	for i := range e.Fields {
		f[e.Fields[i].Name] = Value{}
	}
}

func remove(rec *Record, nodes []*node) error {
	switch {
	case len(nodes) > 1:
		return nodes[1].broken("", "it may stand only once")
	case nodes[0].text != "":
		return nodes[0].broken("", "it must be empty")
	}
	rec.Delete = true
	return nil
}

// single reads a payload element that may stand only once.
func (d *decoder) single(rec *Record, p *Payload, nodes []*node) error {
	for _, n := range nodes {
		if err := d.scalars(rec, p.Element, n); err != nil {
			return err
		}
	}
	if p.Empty == Refuse && rec.Fields[p.Fields[0].Name].IsEmpty() {
		return nodes[0].broken("", "it is empty")
	}
	return nil
}

// scalars reads an element of single values. Without the first of them a group says nothing: all are cleared, or, where the
// group is strict, another one that is filled is refused.
func (d *decoder) scalars(rec *Record, e *Element, n *node) error {
	lead := e.Fields[0].Name
	if _, twice := rec.Fields[lead]; twice {
		return n.broken("", "it may stand only once")
	}
	var first Value
	for i := range e.Fields {
		f := &e.Fields[i]
		v, err := f.Form.read(n.wire(f), d.zone)
		switch {
		case err != nil:
			return n.broken(f.below(), "%w", err)
		case i == 0:
			first = v
		case e.Strict && first.IsEmpty() && !v.IsEmpty():
			return n.broken(e.Fields[0].below(), "it is missing or empty")
		}
		rec.Fields[f.Name] = v
	}
	if first.IsEmpty() {
		clearAll(rec.Fields, e)
		return nil
	}
	for i := range e.Fields {
		f := &e.Fields[i]
		if f.OneOf != nil && !slices.Contains(f.OneOf, rec.Fields[f.Name].Str) {
			return n.broken(f.below(), "%s is none of %v", quoted(rec.Fields[f.Name].Str), f.OneOf)
		}
	}
	return nil
}

// wire is the text of a value of the element itself.
func (n *node) wire(f *Field) string {
	if f.Attr == "" {
		return n.text
	}
	return n.attr(f.Attr)
}

// below names the field under its element, for paths.
func (f *Field) below() string {
	if f.Attr == "" {
		return ""
	}
	return "@" + f.Attr
}

// doors reads PORT, however many of them: each sets the time its POID names; an empty one clears what no other one sets.
func (d *decoder) doors(rec *Record, p *Payload, nodes []*node) error {
	empty := false
	for _, n := range nodes {
		if n.text == "" && n.childText(doorID) == "" && n.childText(doorTime) == "" {
			if empty = true; p.Empty == Refuse {
				return n.broken("", "it is empty")
			}
			continue
		}
		if err := d.door(rec, p.Element, n); err != nil {
			return err
		}
	}
	for i := range p.Fields {
		if _, set := rec.Fields[p.Fields[i].Name]; empty && !set {
			rec.Fields[p.Fields[i].Name] = Value{}
		}
	}
	return nil
}

func (d *decoder) door(rec *Record, e *Element, n *node) error {
	id, err := n.only(doorID)
	if err != nil {
		return err
	}
	if id == nil || id.text == "" {
		return n.broken(doorID, "it is missing or empty")
	}
	when, err := n.only(doorTime)
	if err != nil {
		return err
	}
	v := Value{}
	if when != nil {
		if v, err = FormDateTime.read(when.text, d.zone); err != nil {
			return when.broken("", "%w", err)
		}
	}
	f := e.door(id.text)
	if f == nil {
		return nil // neither opened nor closed: no change
	}
	if _, twice := rec.Fields[f.Name]; twice {
		return id.broken("", "%s stands twice", quoted(id.text))
	}
	rec.Fields[f.Name] = v
	return nil
}

// bind applies what holds the elements of a group together.
func bind(f Fields, k *Kind) {
	switch k.Bond {
	case Loose:
		return
	case FirstRule:
		if !f[k.Payload[0].Fields[0].Name].IsEmpty() {
			return
		}
	case AllOrNone:
		whole := true
		for _, v := range f {
			whole = whole && !v.IsEmpty()
		}
		if whole {
			return
		}
	}
	for i := range k.Payload {
		clearAll(f, k.Payload[i].Element)
	}
}
