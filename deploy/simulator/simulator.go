package simulator

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"msgexchange/jobs/message"
)

// Options say which stream. The same options give the same stream, byte for byte.
type Options struct {
	// Seed chooses the timetable and everything that happens. Streams of seeds with different last digits share no FLID.
	Seed uint64
	// Flights is the number of flights in a day's schedule, code-share children included. 1 … 7500. Default 300.
	Flights int
	// Day is the first operation day; only its date in Zone counts. Required.
	Day time.Time
	// Zone is the airport's. Default UTC+8.
	Zone *time.Location
	// Lists says that the lists of statuses, stands and airbridges (STTS, SLST, ABDG DNLD) come before each schedule.
	Lists bool
}

// maxFlights keeps a day's schedule, at 1.3 kB a flight, below the 10 MB a message may have.
const maxFlights = 7500

func (o Options) withDefaults() Options {
	if o.Flights == 0 {
		o.Flights = 300
	}
	if o.Zone == nil {
		o.Zone = time.FixedZone("UTC+8", int((8 * time.Hour).Seconds()))
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.Flights < 1 || o.Flights > maxFlights {
		errs = append(errs, fmt.Errorf("simulator: flights: %d is not in 1 … %d", o.Flights, maxFlights))
	}
	if o.Day.IsZero() {
		errs = append(errs, errors.New("simulator: day is missing"))
	}
	return errors.Join(errs...)
}

// Message is one message of the stream.
type Message struct {
	Kind message.Kind // "FLOP-PSDT"
	SEQN int64
	At   time.Time // simulated moment, also its DTTM
	Text string    // the XML
}

// Generator makes the stream. Not safe for concurrent use.
type Generator struct {
	Options
	airport   airport
	timetable []service
	queue     queue
	clock     time.Time // never goes back
	seqn      int64
	last      map[int]*flight // arrivals that stayed the night, by service
}

// New prepares the stream of a first day and all that follow. It begins with the day's SCHD-DNLD, dated the evening before.
func New(o Options) (*Generator, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	rnd := random{rand.New(rand.NewPCG(o.Seed, 0))}
	g := &Generator{Options: o, airport: newAirport(o.Flights), last: map[int]*flight{}}
	g.seqn = firstSEQN + int64(rnd.below(lastSEQN-firstSEQN))
	g.timetable = newTimetable(rnd, &g.airport, o.Flights)
	y, m, d := o.Day.In(o.Zone).Date()
	g.openDay(time.Date(y, m, d, 0, 0, 0, 0, o.Zone))
	return g, nil
}

// Next gives the next message; the stream never ends.
func (g *Generator) Next() Message {
	for {
		it := heap.Pop(&g.queue).(item)
		g.clock = it.at
		if d := it.run(); d != nil {
			return g.send(*d)
		}
	}
}

// draft is a message without its META.
type draft struct {
	typ, styp string
	body      []element
}

// The numbers of the sender's counter, always six digits; after the last comes the first again.
const (
	firstSEQN = 100_001
	lastSEQN  = 999_999
)

// send puts the envelope on.
func (g *Generator) send(d draft) Message {
	seqn := g.seqn
	if g.seqn++; g.seqn > lastSEQN {
		g.seqn = firstSEQN
	}
	return Message{Kind: message.Kind(d.typ + "-" + d.styp), SEQN: seqn, At: g.clock, Text: enclosed("AODB", seqn, g.clock, d)}
}

// enclosed is the whole message.
func enclosed(sender string, seqn int64, at time.Time, d draft) string {
	meta := group("META",
		el("SNDR", sender), num("SEQN", seqn), el("DTTM", at.Format("20060102150405")), el("TYPE", d.typ), el("STYP", d.styp))
	return document(append([]element{meta}, d.body...))
}

// after puts something on the queue that happens at t, or now if t has passed. It may send one message or none.
func (g *Generator) after(t time.Time, run func() *draft) {
	if t.Before(g.clock) {
		t = g.clock
	}
	g.queue.n++
	heap.Push(&g.queue, item{at: t.Truncate(time.Second), n: g.queue.n, run: run})
}

// item is something that will happen.
type item struct {
	at  time.Time
	n   int // of two at one time, the one put in first comes first
	run func() *draft
}

// queue is what will happen, soonest first (container/heap).
type queue struct {
	items []item
	n     int
}

func (q *queue) Len() int { return len(q.items) }
func (q *queue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.n < b.n
}
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(x any)    { q.items = append(q.items, x.(item)) }
func (q *queue) Pop() any {
	end := len(q.items) - 1
	x := q.items[end]
	q.items[end] = item{} // let go of what it holds
	q.items = q.items[:end]
	return x
}

// random adds the few draws the simulation speaks in.
type random struct{ *rand.Rand }

// below gives 0 … n-1.
func (r random) below(n int) int { return r.IntN(n) }

// between gives lo … hi.
func (r random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

// minutes gives a whole number of minutes between lo and hi.
func (r random) minutes(lo, hi int) time.Duration { return minutes(r.between(lo, hi)) }

// chance is true in percent of 100 cases.
func (r random) chance(percent float64) bool { return r.Float64()*100 < percent }

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// pick gives one of the choices.
func pick[T any](r random, of []T) T { return of[r.IntN(len(of))] }
