package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// day is one operation day while it is planned and flown.
type day struct {
	*Generator
	rnd     random
	start   time.Time
	made    int64 // flights so far
	flights []*flight
	turns   []*turn
	free    []time.Time // when each stand is free again
}

// planned is how long before its midnight a day's schedule goes out.
const planned = 6 * time.Hour

// openDay puts a day on the queue: its reference lists, then its schedule, from which everything else follows.
func (g *Generator) openDay(start time.Time) {
	at := start.Add(-planned)
	if g.Lists {
		for i, list := range g.airport.lists() {
			g.after(at.Add(time.Duration(i)*time.Second-time.Minute), func() *draft { return &list })
		}
	}
	g.after(at, func() *draft {
		d := &day{Generator: g, start: start, free: make([]time.Time, len(g.airport.stands))}
		d.rnd = random{rand.New(rand.NewPCG(g.Seed, uint64(start.Unix())))}
		g.openDay(start.AddDate(0, 0, 1))
		return d.download()
	})
}

// download makes the day's flights, starts their lives and gives their SCHD-DNLD.
func (d *day) download() *draft {
	for i := range d.timetable {
		d.turns = append(d.turns, d.visits(i, &d.timetable[i])...)
	}
	slices.SortStableFunc(d.turns, func(a, b *turn) int { return a.begin().Compare(b.begin()) })
	for _, t := range d.turns {
		d.place(t)
		d.await(t)
	}
	d.surprises()
	return schedule("DNLD", d.order(d.flights))
}

// await queues the life of a turn: it wakes when the first message about it is due.
func (d *day) await(t *turn) {
	d.after(t.wake(), func() *draft { d.live(t); return nil })
}

// order sorts flights by time; a few children stand before their masters, as the format allows.
func (d *day) order(flights []*flight) []*flight {
	out := slices.Clone(flights)
	key := make(map[*flight]int64, len(out))
	for _, f := range out {
		key[f] = 2 * f.sodt.Unix()
		if f.master != nil && f.id%5 == 0 {
			key[f]--
		}
	}
	slices.SortStableFunc(out, func(a, b *flight) int { return cmp.Compare(key[a], key[b]) })
	return out
}

// visits makes the turns of a service on this day. A service that stays overnight departs in the morning and comes back
// in the evening: two turns, the first of which is linked to the evening before.
func (d *day) visits(n int, s *service) []*turn {
	arrive := func(t *turn) *flight { return d.fly(s, t, true, s.number, s.from, s.in) }
	depart := func(t *turn) *flight { return d.fly(s, t, false, s.number+1, s.to, s.out) }
	out := d.newTurn(s)
	switch s.kind {
	case single:
		out.departure = depart(out)
		return []*turn{out}
	case through:
		out.arrival, out.departure = arrive(out), depart(out)
		join(out.arrival, out.departure)
		return []*turn{out}
	case overnight:
		out.departure = depart(out)
		if before := d.last[n]; before != nil && !before.gone {
			join(before, out.departure)
			d.after(d.clock.Add(d.rnd.minutes(2, 20)), func() *draft { return before.flop("TAOP", before.linkOrNone()...) })
		}
		in := d.newTurn(s)
		in.arrival = arrive(in)
		d.last[n] = in.arrival
		return []*turn{out, in}
	}
	return nil
}

// join links the two flights of one aircraft, both ways.
func join(in, out *flight) {
	in.link, out.link = out, in
}

func (d *day) newTurn(s *service) *turn {
	return &turn{
		craft: s.craft, reno: s.reno,
		ramp: pick(d.rnd, rampAgents()), pax: pick(d.rnd, passengerAgents()), tech: pick(d.rnd, technicians()),
	}
}

// fly makes a flight and its children.
func (d *day) fly(s *service, t *turn, arrives bool, number int, route []station, at time.Duration) *flight {
	f := d.newFlight(s.airline.code, number, t)
	f.sub, f.arrives, f.sodt, f.flty, f.route = s.airline.sub, arrives, d.start.Add(at), s.flty, route
	if d.rnd.chance(6) {
		f.remark = pick(d.rnd, remarks())
	}
	if d.rnd.chance(2) {
		f.vips = d.rnd.between(1, 8)
	}
	for _, code := range s.shares {
		d.share(f, code)
	}
	return f
}

// share sells f under another airline's number too.
func (d *day) share(f *flight, code string) *flight {
	const apart = 4000 // its numbers do not meet those of the services
	child := d.newFlight(code, f.n+apart, f.turn)
	child.arrives, child.sodt, child.flty, child.route, child.master = f.arrives, f.sodt, f.flty, f.route, f
	f.shares = append(f.shares, child)
	return child
}

func (d *day) newFlight(airline string, number int, t *turn) *flight {
	d.made++
	f := &flight{id: d.flid(d.made), airline: airline, n: number, number: airline + strconv.Itoa(number), turn: t}
	d.flights = append(d.flights, f)
	return f
}

// flid is yyMMdd, the seed's last digit and a five-digit number.
func (d *day) flid(n int64) int64 {
	const perSeed, seeds = 100_000, 10
	date, _ := strconv.ParseInt(d.start.Format("060102"), 10, 64)
	return (date*seeds+int64(d.Seed%seeds))*perSeed + n
}

// place gives the turn a free stand, and its flights gates, counters, chutes and belts.
func (d *day) place(t *turn) {
	from, to := t.begin().Add(-minutes(10)), t.end().Add(minutes(10))
	switch {
	case t.arrival == nil:
		from = from.Add(-minutes(80))
	case t.departure == nil:
		to = to.Add(minutes(90))
	}
	i := d.freeStand(t, from)
	d.free[i] = to
	t.stays = []stay{{stand: d.airport.stands[i], from: from, to: to}}
	if t.arrival != nil {
		d.placeArrival(t.arrival)
	}
	if t.departure != nil {
		d.placeDeparture(t.departure)
	}
}

// freeStand prefers a contact stand of the right terminal and size, then a remote one, then whatever is free soonest.
func (d *day) freeStand(t *turn, at time.Time) int {
	best, bestRank := 0, -1
	for i, s := range d.airport.stands {
		rank := 0
		if !d.free[i].After(at) {
			rank = 8
		}
		if s.wide || !t.craft.wide {
			rank += 4
		}
		if s.contact() && s.terminal == t.any().terminal() {
			rank += 2
		}
		if s.wide == t.craft.wide {
			rank++
		}
		if s.contact() && s.terminal != t.any().terminal() {
			rank -= 3
		}
		if rank > bestRank || rank == bestRank && d.free[i].Before(d.free[best]) {
			best, bestRank = i, rank
		}
	}
	return best
}

func (d *day) placeArrival(f *flight) {
	first, belts := 1, 6
	if f.terminal() == "T2" {
		first, belts = 7, 14
	}
	open := f.sodt.Add(minutes(5))
	f.belts = []slot{{code: fmt.Sprintf("B%02d", first+d.rnd.below(belts)), class: "X", from: open, to: open.Add(minutes(40))}}
}

func (d *day) placeDeparture(f *flight) {
	f.gates = []slot{d.gate(f)}
	open, shut := f.sodt.Add(-minutes(120)), f.sodt.Add(-minutes(40))
	hall, classes := "K", []string{"F", "Y", "Y", "Y"}
	if f.terminal() == "T1" {
		hall, open = "A", open.Add(-minutes(30))
	}
	const counters, chutes = 60, 30
	base := d.rnd.below(counters)
	for i := range d.rnd.between(2, len(classes)) {
		f.counters = append(f.counters, slot{code: fmt.Sprintf("%s%02d", hall, 1+(base+i)%counters), class: classes[i], from: open, to: shut})
	}
	f.chutes = []slot{{code: fmt.Sprintf("CH%02d", 1+d.rnd.below(chutes)), class: "Y", from: open, to: f.sodt.Add(-minutes(30))}}
}

// gate is the stand's own, or one of the bus gates.
func (d *day) gate(f *flight) slot {
	code := f.stand().gate
	if code == "" {
		const busGates, firstBusGate = 12, 60
		code = fmt.Sprintf("G%02d", firstBusGate+d.rnd.below(busGates))
	}
	return slot{code: code, from: f.sodt.Add(-minutes(40)), to: f.sodt.Add(-minutes(10))}
}
