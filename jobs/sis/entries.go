package sis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// list reads all elements of one list. One empty element anywhere clears it, where the empty column says so.
func (d *decoder) list(rec *Record, p *Payload, nodes []*node) error {
	var entries []Entry
	empty := false
	var at map[string]int
	if len(nodes) > 1 {
		at = make(map[string]int, len(nodes))
	}
	for _, n := range nodes {
		if n.blank(p.List) {
			empty = true
			continue
		}
		e, ok, err := d.entry(p, n)
		if err != nil {
			return err
		}
		i, twice := at[e.Key]
		switch {
		case !ok:
		case twice && p.List.Numbered():
			return n.broken("@"+p.List.Key.Attr, "%s stands twice", e.Key)
		case twice: // IN and OUT of one stand, say: the last one holds
			entries[i] = e
		default:
			if at != nil {
				at[e.Key] = len(entries)
			}
			entries = append(entries, e)
		}
	}
	l := List{Entries: entries, Clear: p.List.Mode == Replace || p.List.Mode == Merge && d.message.Spec.Mode == Upsert}
	if empty && p.Empty == Clear {
		l = List{Clear: true}
	}
	if !l.Clear && len(entries) == 0 {
		return nil // nothing was said
	}
	slices.SortFunc(l.Entries, p.List.compare)
	if rec.Lists == nil {
		rec.Lists = map[string]List{}
	}
	rec.Lists[p.List.Name] = l
	return nil
}

// compare orders entries: by number, else by key.
func (l *ListSpec) compare(a, b Entry) int {
	if l.Numbered() {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), strings.Compare(a.Key, b.Key))
	}
	return strings.Compare(a.Key, b.Key)
}

// entry reads one filled element of a list; false when it is to be passed over.
func (d *decoder) entry(p *Payload, n *node) (Entry, bool, error) {
	if err := d.count(n); err != nil {
		return Entry{}, false, err
	}
	key, err := d.field(&p.List.Key, n)
	if err != nil {
		return Entry{}, false, err
	}
	switch {
	case !key.IsEmpty():
	case p.Lenient:
		return Entry{}, false, nil
	default:
		return Entry{}, false, n.broken(p.List.Key.place(), "it is missing or empty")
	}
	e := Entry{Key: keyText(key)}
	if e.Fields, err = d.fields(p.List.Fields, n); err != nil {
		return Entry{}, false, err
	}
	if _, led := e.Fields[p.List.Fields[0].Name]; p.List.Led && !led {
		e.Fields = nil
	}
	if p.List.Sub != nil && !p.Lenient {
		e.Sub, err = d.sub(p.List.Sub, n)
	}
	return e, true, err
}

// count refuses the entry n when the message has too many.
func (d *decoder) count(n *node) error {
	if d.parts++; d.parts > maxParts {
		return n.broken("", "more than %d records and list entries in a message", maxParts)
	}
	return nil
}

// keyText is a key as text: a number in its shortest form.
func keyText(key Value) string {
	if key.Type == Number {
		return strconv.FormatInt(key.Num, 10)
	}
	return key.Str
}

// fields reads the filled values of an entry; nil when there are none.
func (d *decoder) fields(specs []Field, n *node) (Fields, error) {
	var out Fields
	for i := range specs {
		v, err := d.field(&specs[i], n)
		switch {
		case err != nil:
			return nil, err
		case !v.IsEmpty():
			if out == nil {
				out = make(Fields, len(specs))
			}
			out[specs[i].Name] = v
		case specs[i].Mandatory:
			return nil, n.broken(specs[i].place(), "it is missing or empty")
		}
	}
	return out, nil
}

// sub reads the filled entries inside an entry.
func (d *decoder) sub(specs []Field, n *node) ([]Fields, error) {
	var out []Fields
	for _, kid := range n.kids {
		if kid.name != subElem {
			continue
		}
		f, err := d.fields(specs, kid)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if err := d.count(n); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// field reads one value of an entry.
func (d *decoder) field(f *Field, n *node) (Value, error) {
	text := n.wire(f)
	if f.Elem != "" {
		kid, err := n.only(f.Elem)
		if err != nil || kid == nil {
			return Value{}, err
		}
		text = kid.text
	}
	v, err := f.Form.read(text, d.zone)
	if err != nil {
		return Value{}, n.broken(f.place(), "%w", err)
	}
	return v, nil
}

// place names the field under its entry, for paths.
func (f *Field) place() string {
	if f.Elem != "" {
		return f.Elem
	}
	return f.below()
}

// blank says that the dictionary names nothing in the element that is filled (3, rules 2 and 7).
func (n *node) blank(l *ListSpec) bool {
	if n.text != "" || n.filled(&l.Key) {
		return false
	}
	for i := range l.Fields {
		if n.filled(&l.Fields[i]) {
			return false
		}
	}
	for _, kid := range n.kids {
		if l.Sub != nil && kid.name == subElem && slices.ContainsFunc(l.Sub, func(f Field) bool { return kid.filled(&f) }) {
			return false
		}
	}
	return true
}

func (n *node) filled(f *Field) bool {
	if f.Elem != "" {
		return n.childText(f.Elem) != ""
	}
	return n.wire(f) != ""
}

// childText is the text of the first filled child of that name; "" when there is none.
func (n *node) childText(name string) string {
	for _, k := range n.kids {
		if k.name == name && k.text != "" {
			return k.text
		}
	}
	return ""
}

// door finds the time a POID means; nil when it means none.
func (e *Element) door(id string) *Field {
	for i := range e.Fields {
		if strings.ToUpper(e.Fields[i].JSON) == id {
			return &e.Fields[i]
		}
	}
	return nil
}
