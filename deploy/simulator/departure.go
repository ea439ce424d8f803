package simulator

import "time"

// leastGround is the shortest time an aircraft needs between its stand and its next departure.
const leastGround = 40 * time.Minute

// depart tells the life of a departure; onBlock is when its aircraft came, or zero when it is here already.
func (l *life) depart(f *flight, onBlock time.Time) {
	off := f.sodt.Add(l.rnd.lateness())
	cause := pick(l.rnd, delayCauses())
	if ready := onBlock.Add(leastGround); ready.After(off) {
		off, cause = ready, lateInbound()
	}
	l.set(f, f.sodt.Add(-190*time.Minute), "EOBT", f.sodt)
	if late := off.Sub(f.sodt); late >= noteworthy {
		l.late(f, off, cause)
	}
	if l.rnd.chance(1.4) {
		off = l.cancel(f, off)
	}
	if l.rnd.chance(6) && l.arrival == nil {
		l.newStand(f, off.Add(-l.rnd.minutes(70, 110)))
	}
	l.checkIn(f, off)
	l.slotTimes(f, off)
	l.board(f, off)
	l.pushBack(f, off)
	l.takeOff(f, off)
	l.extras(f, off.Add(-80*time.Minute))
}

// late tells a delay as it becomes known: reason, new estimates, sometimes a second reason.
func (l *life) late(f *flight, off time.Time, cause delayCause) {
	known := f.sodt.Add(-l.rnd.minutes(30, 90))
	late := off.Sub(f.sodt)
	l.delayed(f, known, late, cause)
	l.set(f, known.Add(time.Minute), "EOBT", off)
	l.set(f, known.Add(2*time.Minute), "ESTT", off)
	if late > time.Hour && l.rnd.chance(50) {
		l.say(f, known.Add(20*time.Minute), "DELY", l.reason(f, f.sodt.Add(late/2), late/2, pick(l.rnd, delayCauses())))
		l.say(f, known.Add(22*time.Minute), "EXSS", el("EXSC", "DLYWX"), el("EXSR", "航路天气，预计延误一小时以上"))
	}
}

// checkIn opens counters and the chute, some counters later than others, and closes them.
func (l *life) checkIn(f *flight, off time.Time) {
	open := f.sodt.Add(-l.rnd.minutes(118, 150))
	shut := off.Add(-l.rnd.minutes(38, 45))
	l.list(f, open.Add(time.Minute), counterList(), func() { mark(f.counters, 2, began, open) })
	l.status(f, open.Add(2*time.Minute), "CKI")
	if len(f.counters) > 2 {
		more := open.Add(l.rnd.minutes(10, 30))
		l.list(f, more.Add(time.Minute), counterList(), func() { mark(f.counters[2:], all, began, more) })
	}
	if l.rnd.chance(60) {
		l.list(f, open.Add(5*time.Minute), chuteList(), func() { mark(f.chutes, all, began, open.Add(4*time.Minute)) })
		l.list(f, shut.Add(13*time.Minute), chuteList(), func() { mark(f.chutes, all, ended, shut.Add(12*time.Minute)) })
	}
	l.list(f, shut.Add(time.Minute), counterList(), func() { mark(f.counters, all, ended, shut) })
}

// slotTimes is the to and fro about the off-block time (A-CDM).
func (l *life) slotTimes(f *flight, off time.Time) {
	target := off.Add(l.rnd.minutes(-3, 3))
	l.set(f, off.Add(-55*time.Minute), "TOBT", target)
	if l.rnd.chance(25) {
		l.set(f, off.Add(-35*time.Minute), "TOBT", target.Add(l.rnd.minutes(1, 9)))
	}
	if l.rnd.chance(2) {
		l.say(f, off.Add(-33*time.Minute), "TOBT") // withdrawn: no payload at all (dictionary 13, Q4)
	}
	l.set(f, off.Add(-45*time.Minute), "COBT", off)
	l.set(f, off.Add(-44*time.Minute), "CTOT", off.Add(l.rnd.minutes(10, 18)))
	if l.rnd.chance(20) {
		later := l.rnd.minutes(3, 12)
		l.set(f, off.Add(-28*time.Minute), "COBT", off.Add(later/2))
		l.set(f, off.Add(-27*time.Minute), "CTOT", off.Add(15*time.Minute+later))
	}
}

// board takes the passengers on.
func (l *life) board(f *flight, off time.Time) {
	open, shut := off.Add(-l.rnd.minutes(30, 42)), off.Add(-l.rnd.minutes(8, 12))
	if l.rnd.chance(8) {
		l.list(f, open.Add(-15*time.Minute), gateList(), func() { f.gates = []slot{l.gate(f)} })
	}
	l.list(f, open.Add(-time.Minute), gateList(), func() { mark(f.gates, all, began, open.Add(-2*time.Minute)) })
	l.set(f, open.Add(time.Minute), "BOTM", open)
	l.status(f, open.Add(2*time.Minute), "BOR")
	l.set(f, shut.Add(-6*time.Minute), "LACL", shut.Add(-7*time.Minute))
	l.list(f, shut.Add(time.Minute), gateList(), func() { mark(f.gates, all, ended, shut) })
	l.door(f, shut.Add(2*time.Minute), "C")
	if l.rnd.chance(30) {
		l.after(shut.Add(3*time.Minute), func() *draft { return f.loadMessage(off) })
	}
}

// pushBack frees the aircraft from its stand.
func (l *life) pushBack(f *flight, off time.Time) {
	l.set(f, off.Add(-9*time.Minute), "APPT", off)
	l.bridges(f, off.Add(-6*time.Minute), "D")
	if l.rnd.chance(70) {
		tractor := off.Add(-5 * time.Minute)
		l.tell(f, tractor, "TIPT", func() []element {
			return []element{group("TIPT", when("TRTM", tractor), el("TRST", f.stand().code))}
		})
	}
	if l.rnd.chance(4) {
		l.say(f, off.Add(-25*time.Minute), "SRVT", group("SRVT",
			el("SRTC", "DEIC"), num("SRQT", 1), when("SRST", off.Add(-25*time.Minute)), el("SRET", ""), el("SRPR", ""),
			el("SANR", "EQUIP"), el("SARR", "除冰车液压故障，换车后继续")))
	}
	l.set(f, off.Add(-3*time.Minute), "EGSR", off.Add(-4*time.Minute))
	l.tell(f, off, "CHOT", func() []element { return f.chocks("OFF", off) })
	l.tell(f, off.Add(time.Minute), "PSHT", func() []element {
		return []element{numbered("PSHT", "PSHN", 1, when("PSTM", off), el("PSID", "OUT"), el("PUST", f.stand().code))}
	})
	l.set(f, off.Add(5*time.Minute), "EGST", off.Add(4*time.Minute))
}

// takeOff is the rest, until it has landed at its next station.
func (l *life) takeOff(f *flight, off time.Time) {
	up := off.Add(l.rnd.minutes(10, 22))
	l.say(f, off.Add(2*time.Minute), "RUNW", el("RUNW", pick(l.rnd, runways())))
	l.set(f, up.Add(time.Minute), "ACTT", up)
	l.status(f, up.Add(2*time.Minute), "DEP")
	if l.rnd.chance(0.3) {
		l.turnBack(f, up)
		return
	}
	down := up.Add(f.leg() - l.rnd.minutes(10, 20))
	l.set(f, up.Add(6*time.Minute), "NEAT", down)
	l.set(f, down.Add(3*time.Minute), "NAAT", down.Add(l.rnd.minutes(-4, 4)))
}
