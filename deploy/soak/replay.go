package main

import (
	"time"

	"msgexchange/deploy/config"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// processed is a message as the system says it dealt with it.
type processed struct {
	id      int64
	at      time.Time // when; the messages of one transaction share it
	verdict verdict
	late    bool
}

// verdict is how a message ended.
type verdict struct {
	state message.State
	class fault.Class
	skip  string
}

// deed is what a message did to a flight.
type deed struct {
	id     int64
	change flight.Change
}

// replay does all messages over again, one after the other, in memory, with the pure core alone.
type replay struct {
	zone     *time.Location
	decode   sis.Options
	flight   flight.Options
	identity message.IdentityPolicy

	set    *flight.Set
	flids  map[int64]bool
	bound  map[string]bond
	deeds  []deed
	events []outbox.Event // without ids, in order

	batch   []outbox.Event // of the transaction at batchAt
	batchAt time.Time
}

// bond says whose an identity is.
type bond struct {
	pos  message.Position
	dttm time.Time
	hash [32]byte
}

// newReplay knows the rules the pods were started with.
func newReplay(zone *time.Location) *replay {
	c := config.Defaults()
	return &replay{
		zone: zone, decode: sis.Options{Zone: zone, Ignore: c.Ignore.Rules}, identity: c.Identity,
		flight: flight.Options{Zone: zone, CutoffHour: c.OperationDay.CutoffHour},
		set:    flight.NewSet(), flids: map[int64]bool{}, bound: map[string]bond{},
	}
}

// next does one message at the moment at which the system says it did.
func (r *replay) next(p processed, text []byte) verdict {
	if !p.at.Equal(r.batchAt) {
		r.flush()
		r.batchAt = p.at
	}
	m, err := sis.Decode(text, r.decode)
	switch {
	case m.Meta.TYPE == "":
		return refused(err)
	case m.Ignored != "":
		return verdict{state: message.Skipped, skip: "ignored:" + m.Ignored}
	}
	pos := message.Position{ID: p.id}
	if owner, mine := r.bind(m, pos); !mine {
		return verdict{state: message.Skipped, skip: "duplicate-of:" + owner.String()}
	}
	if err != nil {
		return refused(err)
	}
	outcome, err := flight.Decide(r.set, m, pos, p.at, r.flight)
	if err != nil {
		return refused(err)
	}
	r.set.Apply(outcome)
	for _, c := range outcome.Changes {
		r.flids[c.After.FLID] = true
		r.deeds = append(r.deeds, deed{p.id, c})
	}
	cause := outbox.Cause{Pos: pos, Meta: m.Meta}
	r.batch = append(r.batch, outbox.Build(cause, outcome, outbox.Options{Zone: r.zone})...)
	return verdict{state: message.Succeeded}
}

// flush ends a transaction: of schd only the newest event of a flight is made in one.
func (r *replay) flush() {
	r.events = append(r.events, outbox.Coalesce(r.batch)...)
	r.batch = nil
}

func refused(err error) verdict { return verdict{state: message.Dead, class: fault.Of(err)} }

// bind makes the identity the message's own, unless it is another's.
func (r *replay) bind(m sis.Message, pos message.Position) (owner message.Position, mine bool) {
	key := r.identity.Key(m.Meta)
	if was, taken := r.bound[key]; taken && !r.identity.Meet(was.dttm, m.Meta.DTTM, was.hash == m.Hash).Process() {
		return was.pos, false
	}
	r.bound[key] = bond{pos, m.Meta.DTTM, m.Hash}
	return pos, true
}
