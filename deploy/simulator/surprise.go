package simulator

import "time"

// surprises puts on the queue what nobody planned: new flights, deleted ones, swapped aircraft, closed stands.
func (d *day) surprises() {
	const flightsPerSurprise = 120
	for range 1 + len(d.turns)/flightsPerSurprise {
		d.addService()
		d.addShare()
		d.remove(func(f *flight) bool { return f.master != nil })
		d.remove(func(f *flight) bool { return f.master == nil })
		d.swap()
		d.closeStand()
	}
}

// notice is how long before a flight it can still be changed in the schedule.
const notice = 5 * time.Hour

// addService announces a charter that was not in the schedule: an SCHD-ADFT with its flights.
func (d *day) addService() {
	s := newService(d.rnd, &d.airport, len(d.timetable)+d.rnd.below(maxFlights))
	s.kind, s.flty = through, "C"
	if s.in > s.out { // drawn as one that stays overnight
		s.in, s.out = s.out, s.in
	}
	d.after(d.start.Add(s.in-notice), func() *draft {
		from := len(d.flights)
		for _, t := range d.visits(-1, &s) {
			t.any().remark = "临时加班包机"
			d.place(t)
			d.await(t)
		}
		return schedule("ADFT", d.flights[from:])
	})
}

// addShare announces a late code-share agreement: an SCHD-ADFT with one child of a known flight.
func (d *day) addShare() {
	t := pick(d.rnd, d.turns)
	d.after(t.begin().Add(-notice), func() *draft {
		if f := t.any(); !f.gone && len(f.shares) == 0 {
			return schedule("ADFT", []*flight{d.share(f, "G5")})
		}
		return nil
	})
}

// remove deletes a flight of some sort, and its children with it; its turnaround link is broken.
func (d *day) remove(sort func(*flight) bool) {
	var of []*flight
	for _, f := range d.flights {
		if sort(f) {
			of = append(of, f)
		}
	}
	if len(of) == 0 {
		return
	}
	f := pick(d.rnd, of)
	d.after(f.sodt.Add(-notice-d.rnd.minutes(10, 60)), func() *draft {
		if f.gone {
			return nil
		}
		f.gone = true
		for _, c := range f.shares {
			c.gone = true
		}
		if other := f.link; other != nil && !other.gone {
			other.link = nil
			d.after(d.clock.Add(4*time.Second), func() *draft { return other.flop("TAOP", other.linkOrNone()...) })
		}
		return f.flop("FDEL", el("FDEL", ""))
	})
}

// swap exchanges the aircraft of two turns while both are still away.
func (d *day) swap() {
	a, b := pick(d.rnd, d.turns), pick(d.rnd, d.turns)
	if a == b || a.craft.wide != b.craft.wide {
		return
	}
	t := a.begin()
	if b.begin().Before(t) {
		t = b.begin()
	}
	d.after(t.Add(-notice), func() *draft {
		typeToo := a.craft != b.craft
		a.craft, b.craft = b.craft, a.craft
		a.reno, b.reno = b.reno, a.reno
		for _, f := range []*flight{a.arrival, a.departure, b.arrival, b.departure} {
			if f != nil {
				d.tellAircraft(f, typeToo)
			}
		}
		return nil
	})
}

// tellAircraft says that f has another aircraft.
func (d *day) tellAircraft(f *flight, typeToo bool) {
	say := func(styp string, payload element) {
		d.after(d.clock.Add(time.Duration(d.rnd.below(20))*time.Second), func() *draft {
			if !f.heard(d.clock) {
				return nil
			}
			return f.flop(styp, payload)
		})
	}
	say("RENO", el("RENO", f.reno))
	if typeToo {
		say("ACFT", el("ACFT", f.craft.code))
		say("MAXP", num("MAXP", f.craft.seats))
	}
}

// closeStand is an RSTA, which the site ignores (dictionary 12).
func (d *day) closeStand() {
	from := d.start.Add(d.rnd.minutes(60, 1200))
	s := pick(d.rnd, d.airport.stands)
	d.after(from.Add(-2*time.Hour), func() *draft {
		return &draft{typ: "RSTA", styp: "STND", body: []element{group("RSTA",
			el("RCOD", s.code), el("STAT", "CLOSED"), when("STRT", from), when("ENDT", from.Add(4*time.Hour)))}}
	})
}
