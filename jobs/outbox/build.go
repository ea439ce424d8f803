package outbox

import (
	"slices"
	"strconv"
	"time"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
)

// MsgKey is the partition key of events on msg; schd always has the FLID.
type MsgKey string

// The closed set of keys.
const (
	ByFLID MsgKey = "flid"
	BySNDR MsgKey = "sndr" // as the system before us did
)

// AllMsgKeys lists the keys.
func AllMsgKeys() []MsgKey { return []MsgKey{ByFLID, BySNDR} }

// Options are what Build must be told about the site.
type Options struct {
	Zone   *time.Location // of the times in values; must not be nil
	MsgKey MsgKey         // empty is ByFLID
}

// Step is one decided message of a batch.
type Step struct {
	Meta       message.Meta
	Position   message.Position
	ReceivedAt time.Time // when it came into the mailbox; zero when unknown
	Outcome    flight.Outcome
}

// Build makes the events of a batch of messages decided in this order: on msg every announcement, message by message; then
// on schd, where only what is counts, the newest state of each flight, in the order of the messages they come from. The
// events must be stored, and get their ids, in this order.
func Build(steps []Step, at time.Time, opt Options) []Event {
	var events []Event
	for i := range steps {
		for _, a := range announcements(steps[i].Outcome.Changes) {
			events = append(events, a.event(&steps[i], at, opt))
		}
	}
	return append(events, newestStates(steps, at, opt)...)
}

// event begins an event of a step.
func (s *Step) event(t Target, f *flight.Flight, at time.Time) Event {
	return Event{
		Target: t, Message: s.Position, FLID: f.FLID, PartitionKey: strconv.FormatInt(f.FLID, 10), Type: Upsert,
		StateVersion: f.Version, Kind: s.Meta.Kind(), SNDR: s.Meta.SNDR, ReceivedAt: s.ReceivedAt, CreatedAt: at,
	}
}

// newestStates looks through the batch from its end, so that each flight is met in its newest state first.
func newestStates(steps []Step, at time.Time, opt Options) []Event {
	var events []Event
	seen := map[int64]bool{}
	for _, s := range slices.Backward(steps) {
		for _, c := range slices.Backward(s.Outcome.Changes) {
			published := c.Before != nil && c.Before.Published
			if c.Op == "" || seen[c.After.FLID] || !published && !c.After.Published {
				continue
			}
			seen[c.After.FLID] = true
			e := s.event(Schd, c.After, at)
			if c.After.Published {
				e.Payload = flight.AppendJSON(nil, c.After, opt.Zone)
			} else {
				e.Type = Tombstone
			}
			events = append(events, e)
		}
	}
	slices.Reverse(events)
	return events
}

// announcement is what one message tells on msg about one flight: its own change, that of children, or both.
type announcement struct {
	flight   *flight.Flight
	own      flight.Change // zero when only children changed
	children []flight.Change
}

// announcements gathers the changes of a message by the flight under which they are told: a child's through its master
// when that lives (contract §8.15).
func announcements(changes []flight.Change) []*announcement {
	var all []*announcement
	byFLID := map[int64]*announcement{}
	under := func(f *flight.Flight) *announcement {
		if byFLID[f.FLID] == nil {
			byFLID[f.FLID] = &announcement{flight: f}
			all = append(all, byFLID[f.FLID])
		}
		return byFLID[f.FLID]
	}
	for _, c := range changes {
		switch {
		case c.Op == "":
		case c.Master != nil:
			a := under(c.Master)
			a.children = append(a.children, c)
		default:
			under(c.After).own = c
		}
	}
	return all
}

func (a *announcement) event(s *Step, at time.Time, opt Options) Event {
	e := s.event(Msg, a.flight, at)
	if opt.MsgKey == BySNDR {
		e.PartitionKey = s.Meta.SNDR
	}
	e.Payload = a.payload(s, opt.Zone)
	return e
}
