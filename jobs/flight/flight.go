package flight

import (
	"encoding/json"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// Flight is the whole state of one flight: what design §2 keeps in flight_schd and the detail tables.
// A Flight is never changed in place once it is shared: Decide works on clones.
type Flight struct {
	FLID         int64
	OperationDay Day // immutable once set (design §6)
	Version      int64
	LastMessage  message.Position
	CreatedBy    message.Position // the message that (last) created it
	DeletedBy    message.Position // zero while it lives
	DeletedAt    time.Time        // zero while it lives
	UpdatedAt    time.Time
	// Published says that schd consumers hold a record of this flight, so that its end needs a tombstone (contract §8.22).
	Published bool
	// Scalars: never holds an Empty value; a cleared field is missing here and present in Provenance.
	Scalars sis.Fields
	// Lists: entries in order (by number, or by key). Holds psht and tipt too, by stand, also for stands not in psdt.
	Lists map[string][]sis.Entry
	Ext   map[string]json.RawMessage
	// MAFL are the FLNO of the live children, sorted; ours, never from the wire (dictionary 8).
	MAFL []string
	// ABDG is derived from psdt and the reference data when psdt is applied (contract §8.23, §8.29).
	ABDG string
	// Provenance: "stnd", "psdt" (whole list), "dely.AT" (entry), "psht.208", "fdiv" (group), "ext.NAME" -> who set it.
	Provenance map[string]message.Position
}

// Live says that the flight exists and has not been deleted.
func (f *Flight) Live() bool { return f != nil && f.DeletedBy.IsZero() }

// Day is an operation day, "2026-11-30".
type Day string
