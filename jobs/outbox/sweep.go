package outbox

import (
	"strconv"

	"msgexchange/jobs/flight"
)

// SweptKind stands in events of the sweep where others have the kind of their message.
const SweptKind = "HISTORY-SWEEP"

// Swept is the tombstone on schd of a flight that leaves the live set though no message deleted it; ok is false when its
// readers hold no record of it. It is one version above the flight's, as a deletion's would be, so that readers who keep the
// highest one take it; its message is the last that touched the flight.
func Swept(f *flight.Flight) (e Event, ok bool) {
	return Event{
		Target: Schd, Message: f.LastMessage, FLID: f.FLID, PartitionKey: strconv.FormatInt(f.FLID, 10), Type: Tombstone,
		StateVersion: f.Version + 1, Kind: SweptKind,
	}, f.Published
}
