// Package refdata decides what becomes of reference data: what a message or an answer of the neighbour says about a list,
// and which airbridges a stand has (design §6, §9; dictionary 9; contract §8.29). Pure: it fetches and stores nothing.
//
// A list changes as a whole or not at all. Everything that was said about it at one time is a Batch.
package refdata

import (
	"encoding/json"
	"slices"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// Source is where a record came from, as it is stored.
type Source string

// The closed set of sources.
const (
	AODB     Source = "AODB"
	AdminAPI Source = "ADMINAPI"
	Pipeline Source = "PIPELINE"
)

// AllSources lists the sources.
func AllSources() []Source { return []Source{AODB, AdminAPI, Pipeline} }

// Record is one record of a list.
type Record struct {
	Key string
	Doc json.RawMessage // an object; nil in a batch that drops
}

// Batch is what is said about one list at one time.
type Batch struct {
	RType   string
	Mode    sis.Mode // sis.Complete, sis.Put or sis.Drop
	Records []Record // each key once
	Source  Source
	// From is the message that says it; zero when none does. A record is never overwritten by an older message.
	From message.Position
	// At is when it was said, which is how old the list is from then on; zero means just now.
	At time.Time
}

// Of is what a message about reference data says.
func Of(m sis.Message, from message.Position) Batch {
	spec := m.Reference.Spec
	b := Batch{RType: spec.Type, Mode: m.Spec.Mode, Source: AODB, From: from, Records: make([]Record, len(m.Reference.Records))}
	for i, r := range m.Reference.Records {
		b.Records[i].Key = r.Key
		if b.Mode != sis.Drop {
			b.Records[i].Doc = spec.AppendJSON(nil, r)
		}
	}
	return b
}

// SaidAt is the age of what the batch says, when it is applied at now: a mailbox whose clock is ahead says nothing in the future.
func (b Batch) SaidAt(now time.Time) time.Time {
	if b.At.IsZero() || b.At.After(now) {
		return now
	}
	return b.At
}

// Stale says that a batch came too late: floor is the newest message that stated the whole list or dropped from it, and what
// it left out must not come back.
func (b Batch) Stale(floor message.Position) bool { return !b.From.IsZero() && floor.After(b.From) }

// Whole says that a batch states all there is, so that everything else goes.
func (b Batch) Whole() bool { return b.Mode == sis.Complete }

// The lists that say which airbridges a stand has: those of the airport's database, and the neighbour's.
const (
	StandList       = "SLST"
	BridgeList      = "ABDG"
	StandBridgeList = "ORMS_STAND_AIRBRIDGE"
)

// BridgeLists lists them.
func BridgeLists() []string { return []string{BridgeList, StandBridgeList, StandList} }

// MovesBridges says that a change of the list may change which airbridges a stand has.
func MovesBridges(rtype string) bool { return slices.Contains(BridgeLists(), rtype) }
