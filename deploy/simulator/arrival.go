package simulator

import "time"

// arrive tells the life of an arrival and gives the time it is on its stand.
func (l *life) arrive(f *flight) (onBlock time.Time) {
	late := l.rnd.lateness()
	out := f.sodt.Add(-f.leg()) // scheduled there
	landing := f.sodt.Add(late)
	l.set(f, out.Add(-60*time.Minute), "PEDT", out)
	if l.rnd.chance(0.7) {
		return l.cancelTurn(f, out.Add(-l.rnd.minutes(5, 50)))
	}
	if late >= noteworthy {
		l.set(f, out.Add(-10*time.Minute), "PEDT", out.Add(late))
		l.set(f, out.Add(-9*time.Minute), "ESTT", landing)
		l.delayed(f, out.Add(-8*time.Minute), late, pick(l.rnd, delayCauses()))
	}
	l.set(f, out.Add(late+3*time.Minute), "PADT", out.Add(late))
	l.set(f, out.Add(late+4*time.Minute), "ESTT", landing.Add(l.rnd.minutes(-6, 6)))
	landing = l.approach(f, landing)
	l.set(f, landing.Add(time.Minute), "ACTT", landing)
	l.status(f, landing.Add(2*time.Minute), "ARR")
	return l.unload(f, landing.Add(l.rnd.minutes(5, 11)))
}

// approach is the last half hour in the air; it gives the time of landing.
func (l *life) approach(f *flight, landing time.Time) time.Time {
	if l.rnd.chance(10) {
		l.newStand(f, landing.Add(-l.rnd.minutes(30, 70)))
	}
	if l.rnd.chance(15) {
		l.set(f, landing.Add(-40*time.Minute), "IEST", landing.Add(l.rnd.minutes(-2, 2)))
	}
	l.set(f, landing.Add(-25*time.Minute), "ESTT", landing.Add(l.rnd.minutes(-1, 1)))
	l.say(f, landing.Add(-20*time.Minute), "RUNW", el("RUNW", pick(l.rnd, runways())))
	switch {
	case l.rnd.chance(0.4):
		landing = l.divert(f, landing)
	case l.rnd.chance(0.6):
		landing = l.goAround(f, landing)
	}
	l.set(f, landing.Add(-6*time.Minute), "FINT", landing.Add(-5*time.Minute))
	return landing
}

// unload is what happens on the stand.
func (l *life) unload(f *flight, onBlock time.Time) time.Time {
	l.tell(f, onBlock, "CHOT", func() []element { return f.chocks("ON", onBlock) })
	l.bridges(f, onBlock.Add(3*time.Minute), "A")
	l.door(f, onBlock.Add(4*time.Minute), "O")
	first, last := onBlock.Add(l.rnd.minutes(9, 16)), onBlock.Add(l.rnd.minutes(20, 38))
	l.list(f, first.Add(time.Minute), beltList(), func() { mark(f.belts, all, began, first) })
	l.list(f, last.Add(time.Minute), beltList(), func() { mark(f.belts, all, ended, last) })
	l.extras(f, onBlock.Add(-30*time.Minute))
	return onBlock
}

// chocks is the list CHOT with one entry.
func (f *flight) chocks(onOff string, t time.Time) []element {
	return []element{numbered("CHOT", "CSNO", 1, when("CHTM", t), el("CHID", onOff), el("CHST", f.stand().code))}
}

// bridges attaches or detaches the bridges of a contact stand, one a minute.
func (l *life) bridges(f *flight, t time.Time, op string) {
	l.after(t, func() *draft {
		var list []element
		for i, b := range f.stand().bridges {
			list = append(list, numbered("ABTM", "ASNO", i+1,
				el("ABDG", b), el("ABOP", op), when("AOTM", t.Add(minutes(i)))))
		}
		if len(list) == 0 || !f.heard(t) {
			return nil
		}
		return f.flop("ABTM", list...)
	})
}

// door opens or closes the cabin door.
func (l *life) door(f *flight, t time.Time, id string) {
	l.say(f, t, "PORT", group("PORT", when("POTM", t), el("POID", id)))
}

// newStand moves the turn's first stay to another stand; the flights follow one by one, each with what depends on it.
func (l *life) newStand(f *flight, t time.Time) {
	to := pick(l.rnd, l.airport.stands)
	for to.wide != f.stand().wide {
		to = pick(l.rnd, l.airport.stands)
	}
	l.tell(f, t, "PSDT", func() []element {
		i := 0
		if !f.arrives {
			i = len(f.stays) - 1
		}
		f.stays[i].stand = to
		return f.stands()
	})
	l.tell(f, t.Add(time.Minute), "STND", func() []element { return []element{el("STND", f.stand().code)} })
	out := l.departure
	if out == nil {
		return
	}
	if out != f {
		l.tell(out, t.Add(2*time.Minute), "PSDT", out.stands)
		l.tell(out, t.Add(3*time.Minute), "STND", func() []element { return []element{el("STND", out.stand().code)} })
	}
	l.list(out, t.Add(4*time.Minute), gateList(), func() { out.gates = []slot{l.gate(out)} })
}

// extras are rare notes about any flight.
func (l *life) extras(f *flight, t time.Time) {
	if l.rnd.chance(3) {
		l.say(f, t, "REMC", el("REMC", pick(l.rnd, remarks())))
	}
	if l.rnd.chance(2) {
		l.say(f, t.Add(-time.Minute), "HNAG",
			num("FHAG", pick(l.rnd, rampAgents())), num("PHAG", pick(l.rnd, passengerAgents())), num("MHAG", pick(l.rnd, technicians())))
	}
	if l.rnd.chance(1.5) {
		size := l.rnd.between(1, 9)
		l.say(f, t.Add(-2*time.Minute), "VIPP", num("VIPP", size), num("VIPR", l.rnd.between(1, 4)))
		l.say(f, t.Add(-time.Minute), "VIPF", group("VIPF", el("VPCD", vipCode(f.id+1)), num("VFES", size)))
	}
	if l.rnd.chance(5) {
		l.say(f, t.Add(-5*time.Minute), "SRVT", group("SRVT",
			el("SRTC", "WCHR"), num("SRQT", l.rnd.between(1, 3)), when("SRST", t), when("SRET", t.Add(25*time.Minute)), num("SRPR", f.pax)))
	}
}
