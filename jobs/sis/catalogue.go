package sis

import (
	"iter"
	"slices"
	"strings"

	"msgexchange/jobs/message"
)

// The families of messages that are about flights.
const (
	TypeSCHD = "SCHD"
	TypeFLOP = "FLOP"
)

// Mode is what a message of a kind does to a flight, or to a list of reference data (dictionary 7, 9).
type Mode string

// The closed set of modes.
const (
	Upsert  Mode = "UPSERT"  // SCHD: each FLTR adds or updates one flight; absent keeps, empty clears, a list replaces
	Set     Mode = "SET"     // one value of the flight
	Group   Mode = "GROUP"   // several values set together
	Replace Mode = "REPLACE" // the list in the message becomes the whole list
	Merge   Mode = "MERGE"   // entries replace or join stored entries with the same key; others stay
	Patch   Mode = "PATCH"   // values kept with the PSDT entry of a stand; stands not mentioned keep theirs
	Remove  Mode = "DELETE"  // the flight goes

	Complete Mode = "COMPLETE" // reference data: the records are all there are
	Put      Mode = "PUT"      // reference data: each record is added, or takes the place of the one with its key
	Drop     Mode = "DROP"     // reference data: the records with these keys go
)

// AllModes lists the modes.
func AllModes() []Mode {
	return []Mode{Upsert, Set, Group, Replace, Merge, Patch, Remove, Complete, Put, Drop}
}

// Effect is what an absent or an empty payload element of a FLOP means.
type Effect string

// The closed set of effects.
const (
	Keep   Effect = "no change"
	Clear  Effect = "clear" // the values, or all entries of the list
	Refuse Effect = "!"     // the message is refused: PROTOCOL
	Delete Effect = "delete"
)

// AllEffects lists the effects.
func AllEffects() []Effect { return []Effect{Keep, Clear, Refuse, Delete} }

// Bond is how the values of a GROUP hang together across its elements.
type Bond string

// The closed set of bonds.
const (
	Loose     Bond = ""             // each on its own
	AllOrNone Bond = "all or none"  // one empty or absent clears all (TAOP)
	FirstRule Bond = "first clears" // the first one empty clears the others too (EXSS)
)

// Field is one value on the wire: the text of an element, or an attribute.
type Field struct {
	Name      string   // its name in Fields: "stnd", "fdiv.ddes", "psst"
	Group     string   // "fdiv" in "fdiv.ddes": values that are set and remembered together; else ""
	JSON      string   // its name in JSON, inside Group if there is one: "stnd", "ddes", "duraMinutes"
	Elem      string   // element whose text or attribute it is; "" = the entry's own element
	Attr      string   // attribute; "" = the text
	Form      Form     // how it is written
	Max       int      // column size of the known consumer; never enforced (dictionary 3, rule 6); 0 = none known
	Mandatory bool     // must be there and filled
	OneOf     []string // the only values there are; nil = any
	Meaning   string
}

// Type is what the field's values are.
func (f *Field) Type() Type { return f.Form.Type() }

// JSON is the name of a whole element in JSON.
func (e *Element) JSON() string { return strings.ToLower(e.Name) }

// ListSpec is one list of a flight record.
type ListSpec struct {
	Name    string  // its name in Lists: "psdt"
	Elem    string  // "PSDT"
	Mode    Mode    // what a FLOP of this list does: Replace, Merge or Patch
	Key     Field   // what tells entries apart; a FormNumber orders the list too. Not among Fields
	Fields  []Field // the rest of an entry, in wire order
	Sub     []Field // VIPT of VIPF: the fields of the entries inside an entry; nil everywhere else
	Led     bool    // without its first field an entry's other fields say nothing (PSHT)
	Meaning string
}

// Numbered says that entries are known by a number that also orders them; else they are known by text.
func (l *ListSpec) Numbered() bool { return l.Key.Form == FormNumber }

// Element is one child of a record: Fields (one when plain, several for a group; of each entry when a record of reference
// data may have any number), or a List of a flight.
type Element struct {
	Name    string
	Card    string // 1, ?, * as the dictionary's section 5 has it
	Fields  []Field
	List    *ListSpec
	Strict  bool // a group whose first field is empty while another is filled is refused; else it clears (FRET, FLAB; not FDIV)
	Door    bool // PORT: its children say which of Fields is meant
	Meaning string
}

// Payload is one element a FLOP speaks of.
type Payload struct {
	*Element
	Absent, Empty Effect
	// Lenient: entries without their key are passed over, and what is inside an entry is not applied (VIPF).
	Lenient bool
}

// Kind is one entry of the catalogue. It is shared: read only.
type Kind struct {
	Name       message.Kind
	TYPE, STYP string
	Mode       Mode
	Bond       Bond
	Payload    []Payload      // nil for SCHD, which speaks of the whole record, and for reference data
	Reference  *ReferenceSpec // the list it speaks of; nil for what is about flights
	Answers    message.Kind   // the request of ours it answers; it counts only while that is open (dictionary 4 #10). "" = none
	Rules      string         // further rules, in words
	Meaning    string
}

// catalogue is everything this package knows about the wire.
type catalogue struct {
	elements []Element // of a flight record but FLID, in wire order
	byElem   map[string]*Element
	names    map[string]string // of all elements and attributes, each as itself
	scalars  []Field
	byScalar map[string]*Field
	lists    []ListSpec
	byList   map[string]*ListSpec

	references []ReferenceSpec
	byType     map[string]*ReferenceSpec
	kinds      []Kind
	byKind     map[message.Kind]*Kind
}

// wire is built once from plain data and never written again; handing it through every call would say nothing.
var wire = newCatalogue() //nolint:gochecknoglobals // immutable table

func newCatalogue() *catalogue {
	c := &catalogue{
		lists: listSpecs(), byElem: map[string]*Element{}, byScalar: map[string]*Field{},
		byList: map[string]*ListSpec{}, byKind: map[message.Kind]*Kind{},
		references: referenceSpecs(), byType: map[string]*ReferenceSpec{},
	}
	for i := range c.lists {
		c.byList[c.lists[i].Name] = &c.lists[i]
	}
	c.elements = recordElements(c.byList)
	for i := range c.elements {
		e := &c.elements[i]
		c.byElem[e.Name] = e
		c.scalars = append(c.scalars, e.Fields...)
	}
	for i := range c.scalars {
		c.byScalar[c.scalars[i].Name] = &c.scalars[i]
	}
	for i := range c.references {
		c.byType[c.references[i].Type] = &c.references[i]
	}
	c.names = wireNames(c)
	c.kinds = slices.Concat(schdKinds(), flopKinds(c.byElem), referenceKinds(c.references))
	for i := range c.kinds {
		k := &c.kinds[i]
		k.Name = message.Meta{TYPE: k.TYPE, STYP: k.STYP}.Kind()
		c.byKind[k.Name] = k
	}
	return c
}

// Catalogue yields every kind: SCHD, FLOP, reference data, each in the order of the dictionary.
func Catalogue() iter.Seq[*Kind] {
	return func(yield func(*Kind) bool) {
		for i := range wire.kinds {
			if !yield(&wire.kinds[i]) {
				return
			}
		}
	}
}

// Lookup finds a kind whatever its case.
func Lookup(kind message.Kind) (*Kind, bool) {
	k, ok := wire.byKind[message.Kind(strings.ToUpper(string(kind)))]
	return k, ok
}

// ScalarSpecs are the single values of a flight in wire order, FLID excepted. The slice is shared: read only.
func ScalarSpecs() []Field { return wire.scalars }

// Scalar finds a single value by its name in Fields.
func Scalar(name string) (*Field, bool) {
	f, ok := wire.byScalar[name]
	return f, ok
}

// ListSpecs are the lists of a flight in wire order. The slice is shared: read only.
func ListSpecs() []ListSpec { return wire.lists }

// ListByName finds a list by its name in Lists.
func ListByName(name string) (*ListSpec, bool) {
	l, ok := wire.byList[name]
	return l, ok
}
