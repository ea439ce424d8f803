package sis

import (
	"encoding/json"

	"msgexchange/jobs/message"
)

// Message is a decoded message: envelope and body in terms of the catalogue. Records or Reference is set, as its TYPE has it.
type Message struct {
	Meta message.Meta
	// Hash is SHA-256 of everything but META, to tell a counter that restarted from a repeated message (design §5, K26).
	Hash [32]byte
	// Ignored is the ignore rule that matched, as configured; the body is then not looked at (dictionary 4 #5).
	Ignored string
	// Spec is the catalogue entry; nil when Ignored or not in the catalogue.
	Spec *Kind
	// Records are the FLTR of a SCHD or the FLOP bodies, in the order of the text; nil with an error, and for reference data.
	Records []Record
	// Reference is the body of a message about reference data; nil with an error, and for what is about flights.
	Reference *Reference
}

// Record is what one FLTR or one FLOP body says about one flight.
type Record struct {
	FLID int64 // the key; not repeated in Fields
	// Fields by lower-case name: absent from the map = not in the message; an Empty value = there but empty; else the value.
	// For a FLOP the absent and empty columns of the dictionary's table 7 are already applied: what is to be cleared is
	// Empty here, what is to stay is absent. Grouped names are dotted: "fdiv.ddes", "port.o" (contract §8.2).
	Fields Fields
	// Lists by lower-case name; a list absent from the map was not in the message. Nil when there are none.
	Lists map[string]List
	// Ext are the elements of a FLTR that the catalogue does not know, by lower-case name: text, object with attributes, or
	// array of these when repeated (contract §8.2). Nil for a FLOP.
	Ext map[string]json.RawMessage
	// Delete says that the flight goes (FDEL).
	Delete bool
}

// List is one list of a record.
type List struct {
	// Clear says that the stored entries go before Entries are applied: always for REPLACE and in an FLTR (PSHT and TIPT
	// excepted), for MERGE when one empty element stood anywhere; then there are no Entries.
	Clear bool
	// Entries are in the order of their numbers or keys, each key once.
	Entries []Entry
}

// Entry is one element of a list. Its key is the entry number ("1") for numbered lists, else the text of its key
// (CODE, SRTC, VPCD, the stand for PSHT and TIPT). It is the whole entry: a value it does not have is none.
type Entry struct {
	Key string
	// Fields are the filled values but the key, by lower-case name; nil when there are none: a PSHT or TIPT without any
	// takes the time of its stand away.
	Fields Fields
	// Sub are the filled VIPT of a VIPF in an FLTR, in the order of the text; nil everywhere else. A FLOP never has them and
	// says nothing of them (dictionary 7, VIPF).
	Sub []Fields
}

// Fields maps lower-case wire names to values.
type Fields map[string]Value
