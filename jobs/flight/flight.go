package flight

import (
	"encoding/json"
	"maps"
	"strings"
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
	// Swept says that it is no longer kept here: it went into the history. To messages it is a flight never heard of, but that
	// none older than DeletedBy brings it back, and that it goes on counting its versions if a newer one does (decision 0016).
	Swept bool
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
	// "flid" names the newest schedule that carried the flight; "fdel" the deletion before the flight was created again.
	Provenance map[string]message.Position
}

// Live says that the flight exists and has not been deleted.
func (f *Flight) Live() bool { return f != nil && f.DeletedBy.IsZero() }

// Master is the FLID of the flight this one is a code share of, 0 when it stands for itself. A flight that names itself
// stands for itself.
func (f *Flight) Master() int64 {
	if maid := f.Scalars["maid"].Num; maid != f.FLID {
		return maid
	}
	return 0
}

// FLNO is the flight number, for people: flights are told apart by FLID alone (K27).
func (f *Flight) FLNO() string { return f.Scalars["flno"].Str }

// Clone is a copy of f whose maps may be changed. The lists in Lists are shared: a changed one is put there in place of the
// old.
func (f *Flight) Clone() *Flight {
	c := *f
	c.Scalars = cloneMap(f.Scalars)
	c.Lists = cloneMap(f.Lists)
	c.Ext = cloneMap(f.Ext)
	c.Provenance = cloneMap(f.Provenance)
	return &c
}

// cloneMap is maps.Clone that never gives nil.
func cloneMap[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return M{}
	}
	return maps.Clone(m)
}

// Day is an operation day, "2026-11-30".
type Day string

// Keys of the provenance that name no field.
const (
	keyScheduled = "flid" // the newest schedule that carried the flight
	keyDeleted   = "fdel" // the deletion after which the flight was created again
)

// deletion is the newest message that deleted the flight, also when it was created again since; zero when none did.
func (f *Flight) deletion() message.Position {
	switch {
	case f == nil:
		return message.Position{}
	case f.Live():
		return f.Provenance[keyDeleted]
	}
	return f.DeletedBy
}

// newFlight is a flight that nothing is known of yet but its day.
func newFlight(flid int64, day Day, pos message.Position) *Flight {
	return (&Flight{FLID: flid, OperationDay: day, CreatedBy: pos}).Clone()
}

// Ghost is what is left of a flight that was swept: the message that deleted it, or the last one that touched it, its version
// and when it went.
func Ghost(flid int64, day Day, version int64, last message.Position, at time.Time) *Flight {
	return &Flight{FLID: flid, OperationDay: day, Version: version, LastMessage: last, DeletedBy: last, DeletedAt: at, Swept: true}
}

// again is a deleted flight created once more: its fields start empty and its version goes on counting (contract §8.27).
func (f *Flight) again(day Day, pos message.Position) *Flight {
	fresh := newFlight(f.FLID, day, pos)
	fresh.Version, fresh.Published = f.Version, f.Published
	fresh.Provenance[keyDeleted] = f.DeletedBy
	return fresh
}

// FFID is the flight's readable name, ALCD-FLNO-MVIN-SODT-FLIN, with SODT as on the wire (dictionary 7). For people only.
func (f *Flight) FFID(zone *time.Location) string {
	sodt := strings.ToUpper(time.Unix(f.Scalars["sodt"].Num, 0).In(zone).Format("02Jan061504"))
	return strings.Join([]string{f.Scalars["alcd"].Str, f.FLNO(), f.Scalars["mvin"].Str, sodt, f.Scalars["flin"].Str}, "-")
}
