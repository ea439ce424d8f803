package simulator

import (
	"fmt"
	"time"
)

// service flies every day: it arrives, or departs, or both with one aircraft.
type service struct {
	airline airline
	number  int // of the arrival; the departure has the next one
	from    []station
	to      []station
	craft   aircraft
	reno    string
	in, out time.Duration // after midnight
	kind    serviceKind
	flty    string
	shares  []string // airlines that sell it too
}

// serviceKind says which flights a service has on a day.
type serviceKind int

const (
	through   serviceKind = iota // arrives and departs on the same day
	overnight                    // departs in the morning, comes back in the evening and stays
	single                       // departs only
)

// flights is how many a day's schedule holds of it.
func (s *service) flights() int {
	if s.kind == single {
		return 1
	}
	return 2 * (1 + len(s.shares))
}

// newTimetable makes services until a day has exactly so many flights.
func newTimetable(r random, a *airport, flights int) []service {
	var all []service
	for left := flights; left > 0; left -= all[len(all)-1].flights() {
		s := newService(r, a, len(all))
		for s.flights() > left && len(s.shares) > 0 {
			s.shares = s.shares[1:]
		}
		if s.flights() > left {
			s.kind = single
		}
		all = append(all, s)
	}
	return all
}

func newService(r random, a *airport, n int) service {
	s := service{airline: pick(r, a.airlines), flty: "J", reno: fmt.Sprintf("B%04X", 0x1000+n)}
	// No two services of a stream share a number, whatever their airline.
	const firstNumber, lastNumber = 1001, 9999
	s.number = firstNumber + 2*n%(lastNumber-firstNumber)
	s.route(r, a)
	s.times(r)
	if r.chance(4) {
		s.flty = pick(r, []string{"C", "F"})
	}
	if s.flty == "J" && len(s.airline.partners) > 0 && r.chance(30) {
		s.shares = s.airline.partners[:r.between(1, len(s.airline.partners))]
	}
	return s
}

// route chooses where it comes from and goes to: foreign airlines and some others fly abroad, a few make a stop.
func (s *service) route(r random, a *airport) {
	stations, wide := a.domestic, 8.0
	if s.airline.foreign || r.chance(8) {
		stations, wide = a.abroad, 60
	}
	from, to := pick(r, stations), pick(r, stations)
	s.from, s.to = []station{from}, []station{to}
	if from.flin == "D" && r.chance(6) {
		s.to = append(s.to, station{code: "JHG", flin: "D", fly: to.fly + 120})
		if to.code == "JHG" {
			s.to = s.to[:1]
		}
	}
	long := r.chance(wide)
	for s.craft = pick(r, a.fleet); s.craft.wide != long; {
		s.craft = pick(r, a.fleet)
	}
}

// times spreads the day: a morning wave of departures that stayed the night, two peaks of turnarounds, late arrivals.
func (s *service) times(r random) {
	five := func(lo, hi int) time.Duration { return minutes(5 * r.between(lo*12, hi*12)) } // full hours in, steps of 5 min out
	if r.chance(16) {
		s.kind, s.out, s.in = overnight, five(6, 8), five(20, 23)
		return
	}
	switch {
	case r.chance(35):
		s.in = five(7, 10)
	case r.chance(45):
		s.in = five(15, 19)
	default:
		s.in = five(7, 20)
	}
	ground := r.between(11, 20)
	if s.craft.wide {
		ground = r.between(18, 32)
	}
	s.out = s.in + minutes(5*ground)
}
