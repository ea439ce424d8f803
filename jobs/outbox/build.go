package outbox

import (
	"iter"
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

// Cause is the message behind events.
type Cause struct {
	Pos        message.Position
	Meta       message.Meta
	ReceivedAt time.Time // when it came in
}

// event begins an event about f.
func (c *Cause) event(t Target, f *flight.Flight) Event {
	return Event{
		Target: t, Message: c.Pos, FLID: f.FLID, PartitionKey: strconv.FormatInt(f.FLID, 10), Type: Upsert,
		StateVersion: f.Version, Kind: c.Meta.Kind(), SNDR: c.Meta.SNDR, ReceivedAt: c.ReceivedAt,
	}
}

// Build makes the events of one decided message: on msg what changed, then on schd what is now. They must be stored, and
// get their ids, in this order and in the order of the messages.
func Build(c Cause, o flight.Outcome, opt Options) []Event {
	b := NewBatch(opt)
	b.Add(c, o)
	return slices.Collect(b.All())
}

// Batch makes the events of messages that were decided one after the other: those of Build and Coalesce, but a state that a
// later message of the batch replaces is never written down. Payloads are written when they are asked for: of a large batch no
// two need be in memory at a time.
type Batch struct {
	opt    Options
	drafts []draft
	newest map[int64]int // FLID -> place of its newest event on schd
	amount int
}

// draft is an event whose payload is not written yet.
type draft struct {
	event Event // without a target: nobody needs it any more
	cause *Cause
	told  *announcement  // on msg
	state *flight.Flight // on schd; nil for a tombstone
}

// NewBatch begins a batch.
func NewBatch(opt Options) *Batch { return &Batch{opt: opt, newest: map[int64]int{}} }

// Add adds what one message did. Messages must come in their order.
func (b *Batch) Add(c Cause, o flight.Outcome) {
	for _, a := range announcements(o.Changes) {
		e := c.event(Msg, a.flight)
		if b.opt.MsgKey == BySNDR {
			e.PartitionKey = c.Meta.SNDR
		}
		b.push(draft{event: e, cause: &c, told: a})
	}
	for _, change := range o.Changes {
		published := change.Before != nil && change.Before.Published
		if change.Op == "" || !published && !change.After.Published {
			continue
		}
		e := c.event(Schd, change.After)
		if at, found := b.newest[e.FLID]; found {
			b.drafts[at] = draft{}
			b.amount--
		}
		b.newest[e.FLID] = len(b.drafts)
		if change.After.Published {
			b.push(draft{event: e, state: change.After})
		} else {
			e.Type = Tombstone
			b.push(draft{event: e})
		}
	}
}

func (b *Batch) push(d draft) {
	b.drafts = append(b.drafts, d)
	b.amount++
}

// Len is how many events the batch has; nil has none.
func (b *Batch) Len() int {
	if b == nil {
		return 0
	}
	return b.amount
}

// All gives the batch's events, in the order in which they must be stored. Nothing may be added meanwhile.
func (b *Batch) All() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var buf []byte // in which a payload is written before its size is known
		for i := range b.drafts {
			d := &b.drafts[i]
			switch {
			case d.event.Target == "":
				continue
			case d.told != nil:
				buf = d.told.appendPayload(buf[:0], d.cause, b.opt.Zone)
			case d.state != nil:
				buf = flight.AppendJSON(buf[:0], d.state, b.opt.Zone)
			default:
				buf = buf[:0]
			}
			e := d.event
			if len(buf) > 0 {
				e.Payload = slices.Clone(buf)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// StateOf is the event on schd that says what f is now, in the place of one that died. A flight that is not published, or nil,
// is a tombstone.
func StateOf(dead Event, f *flight.Flight, zone *time.Location) Event {
	e := Event{
		Target: Schd, Message: dead.Message, FLID: dead.FLID, PartitionKey: strconv.FormatInt(dead.FLID, 10), Type: Tombstone,
		StateVersion: dead.StateVersion, Kind: dead.Kind, SNDR: dead.SNDR,
	}
	if f != nil {
		e.Message, e.StateVersion = f.LastMessage, f.Version
	}
	if f != nil && f.Published {
		e.Type, e.Payload = Upsert, flight.AppendJSON(nil, f, zone)
	}
	return e
}

// Coalesce takes out of a batch's events those on schd that a later one about the same flight makes pointless, and keeps the
// order of the rest. On msg every event counts.
func Coalesce(events []Event) []Event {
	newest := map[int64]int{}
	for i, e := range events {
		if e.Target == Schd {
			newest[e.FLID] = i
		}
	}
	kept := make([]Event, 0, len(events))
	for i, e := range events {
		if e.Target == Msg || newest[e.FLID] == i {
			kept = append(kept, e)
		}
	}
	return kept
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
