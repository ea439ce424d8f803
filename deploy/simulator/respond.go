package simulator

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"msgexchange/jobs/message"
)

// Manner is how the airport database answers a request.
type Manner string

// The closed set of manners.
const (
	OnTime  Manner = "on time"
	Twice   Manner = "twice" // the second one must not count
	TooLate Manner = "late"  // when nobody waits any longer
	Lost    Manner = "lost"  // never; but who asks again is answered
	Never   Manner = "never"
)

// MannerOf is the script of the demo: every manner comes.
func MannerOf(kind message.Kind) Manner {
	switch kind {
	case "RQFD-NONE", "RQRD-SLST", "RQRD-ABDG", "RQRD-DLYL":
		return OnTime
	case "RQRD-AIRL":
		return Lost
	case "RQRD-STTS":
		return Twice
	case "RQRD-TLST":
		return TooLate
	}
	return Never
}

// Outbox is where requests to the airport database are put.
type Outbox interface {
	// Take gives the texts of the requests that have not been taken yet, in their order, and marks them as taken at now.
	Take(ctx context.Context, now time.Time) ([]string, error)
}

// Responder plays the airport database's part in requests: it takes them and answers through the inbound mailbox.
type Responder struct {
	Outbox  Outbox
	Mailbox Mailbox
	// Airport is whose data the answers are. Its seed's last digit must differ from that of the stream in the same mailbox, so
	// that their flights are not the same.
	Airport   Options
	Delay     time.Duration // of an answer; one that comes twice comes again after twice the time
	LateDelay time.Duration
	Manner    func(message.Kind) Manner // nil: MannerOf
	Now       func() time.Time          // default time.Now

	made    int64
	pending []reply // soonest first
	lost    map[message.Kind]bool
}

// Replies say what a Responder has done.
type Replies struct {
	Requests int `json:"requests"` // taken
	Answers  int `json:"answers"`  // put into the mailbox
}

// reply is an answer on its way.
type reply struct {
	at   time.Time
	body draft
}

// look is the pause between looks at the outbox.
const look = 100 * time.Millisecond

// Run answers until ctx ends, which is no error, and then until every answer it owes is given. It must not be called again.
func (r *Responder) Run(ctx context.Context) (done Replies, err error) {
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Manner == nil {
		r.Manner = MannerOf
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	working := context.WithoutCancel(ctx)
	for ctx.Err() == nil || len(r.pending) > 0 {
		if ctx.Err() == nil {
			taken, err := r.take(working)
			done.Requests += taken
			if err != nil {
				return done, err
			}
		}
		given, err := r.give(working)
		done.Answers += given
		if err != nil {
			return done, err
		}
		<-tick.C
	}
	return done, nil
}

// take takes the requests that wait and plans their answers.
func (r *Responder) take(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := r.Now()
	texts, err := r.Outbox.Take(ctx, now)
	if err != nil {
		return 0, fmt.Errorf("simulator: take requests: %w", err)
	}
	var errs []error
	for _, text := range texts {
		errs = append(errs, r.plan(text, now))
	}
	return len(texts), errors.Join(errs...)
}

// asked is a request as the airport database reads it.
type asked struct {
	META struct{ TYPE, STYP string }
	RQFD struct{ STDB, STDE string }
}

func (r *Responder) plan(text string, now time.Time) error {
	var q asked
	if err := xml.Unmarshal([]byte(text), &q); err != nil {
		return fmt.Errorf("simulator: read a request: %w", err)
	}
	kind := message.Kind(q.META.TYPE + "-" + q.META.STYP)
	manner := r.Manner(kind)
	if manner == Lost {
		if r.lost == nil {
			r.lost = map[message.Kind]bool{}
		}
		r.lost[kind] = !r.lost[kind]
		manner = map[bool]Manner{true: Never, false: OnTime}[r.lost[kind]]
	}
	if manner == Never {
		return nil
	}
	body, known, err := r.answer(q)
	if err != nil || !known {
		return err
	}
	switch manner {
	case OnTime:
		r.owe(now.Add(r.Delay), body)
	case Twice:
		r.owe(now.Add(r.Delay), body)
		r.owe(now.Add(2*r.Delay), body)
	case TooLate:
		r.owe(now.Add(r.LateDelay), body)
	case Never, Lost:
	}
	return nil
}

func (r *Responder) owe(at time.Time, body draft) {
	r.pending = append(r.pending, reply{at, body})
	slices.SortStableFunc(r.pending, func(a, b reply) int { return a.at.Compare(b.at) })
}

// answer is what the airport database has to say; known is false for lists it does not have.
func (r *Responder) answer(q asked) (body draft, known bool, err error) {
	o := r.Airport.withDefaults()
	if q.META.TYPE == "RQFD" {
		body, err = scheduleFor(o, q.RQFD.STDB, q.RQFD.STDE)
		return body, err == nil, err
	}
	a := newAirport(o.Flights)
	for _, l := range append(a.lists(), list("TLST", a.terminalRecords()), list("AIRL", a.airlineRecords()), list("DLYL", delayRecords())) {
		if l.typ == q.META.STYP {
			l.styp = "RESP"
			return l, true, nil
		}
	}
	return draft{}, false, nil
}

// scheduleFor is the schedule of a window, as SCHD-RESP.
func scheduleFor(o Options, begin, end string) (draft, error) {
	const form = "02Jan061504" // months may be in any case
	from, err1 := time.ParseInLocation(form, begin, o.Zone)
	to, err2 := time.ParseInLocation(form, end, o.Zone)
	if err := errors.Join(err1, err2); err != nil {
		return draft{}, fmt.Errorf("simulator: read a window: %w", err)
	}
	var flights []*flight
	y, m, d := from.Date()
	for start := time.Date(y, m, d, 0, 0, 0, 0, o.Zone); !start.After(to); start = start.AddDate(0, 0, 1) {
		day, err := flightsOf(o, start)
		if err != nil {
			return draft{}, err
		}
		for _, f := range day {
			if !f.sodt.Before(from) && !f.sodt.After(to) {
				flights = append(flights, f)
			}
		}
	}
	return *schedule("RESP", flights), nil
}

// flightsOf are the flights of the day that begins at start, in the order of its schedule.
func flightsOf(o Options, start time.Time) ([]*flight, error) {
	o.Day = start
	g, err := New(o)
	if err != nil {
		return nil, err
	}
	one := &day{Generator: g, start: start, free: make([]time.Time, len(g.airport.stands))}
	one.rnd = random{rand.New(rand.NewPCG(g.Seed, uint64(start.Unix())))}
	one.download()
	return one.order(one.flights), nil
}

func (a *airport) terminalRecords() []element {
	var out []element
	seen := map[string]bool{}
	for _, s := range a.stands {
		if !seen[s.terminal] {
			seen[s.terminal] = true
			out = append(out, group("TLST", el("TCOD", s.terminal), el("TNAM", "Terminal "+s.terminal), el("TNMC", s.terminal+"航站楼"), el("TPAX", "Y")))
		}
	}
	return out
}

// give puts the answers that are due into the mailbox.
func (r *Responder) give(ctx context.Context) (given int, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := r.Now()
	for len(r.pending) > 0 && !r.pending[0].at.After(now) {
		if err := r.Mailbox.Insert(ctx, []Row{{Text: r.text(r.pending[0].body, now), ReceivedAt: now}}); err != nil {
			return given, fmt.Errorf("simulator: answer a request: %w", err)
		}
		r.pending = r.pending[1:]
		given++
	}
	return given, nil
}

// text puts the envelope on, with a counter of its own: the stream never sends answers.
func (r *Responder) text(body draft, now time.Time) string {
	g := Generator{Options: r.Airport.withDefaults(), seqn: firstSEQN + r.made%(lastSEQN-firstSEQN)}
	g.clock = now.In(g.Zone)
	r.made++
	return g.send(body).Text
}
