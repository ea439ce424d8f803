package simulator

import "fmt"

// record writes the flight as an FLTR, elements in the order of dictionary 5.
func (f *flight) record() element {
	e := group("FLTR",
		num("FLID", f.id), el("ALCD", f.airline))
	e.kids = append(e.kids, filled(el("ALSC", f.sub))...)
	e.kids = append(e.kids,
		el("FLNO", f.number), el("MVIN", f.mvin()), when("SODT", f.sodt), el("FLTY", f.flty), el("FLIN", f.flin()))
	e.kids = append(e.kids, f.neighbours()...)
	e.kids = append(e.kids, el("ACFT", f.craft.code), el("RENO", f.reno))
	if f.link != nil && f.master == nil {
		e.kids = append(e.kids, f.linked()...)
	}
	e.kids = append(e.kids, el("TRML", f.terminal()))
	if f.master != nil {
		e.kids = append(e.kids, el("CSOP", f.master.airline), el("CSFT", f.master.number), num("MAID", f.master.id))
	} else {
		e.kids = append(e.kids, f.equipment()...)
	}
	e.kids = append(e.kids, f.wholeRoute()...)
	e.kids = append(e.kids, el("FTSS", "SCH"))
	if !f.arrives && f.master == nil {
		e.kids = append(e.kids, when("EOBT", f.sodt))
	}
	return e
}

// equipment is what a child leaves to its master: seats, places, agents, remarks, VIPs.
func (f *flight) equipment() []element {
	kids := []element{num("MAXP", f.craft.seats)}
	kids = append(kids, slots(chuteList(), f)...)
	kids = append(kids, slots(gateList(), f)...)
	kids = append(kids, el("STND", f.stand().code))
	kids = append(kids, f.stands()...)
	kids = append(kids, slots(counterList(), f)...)
	kids = append(kids, num("PHAG", f.pax))
	kids = append(kids, filled(el("REMC", f.remark))...)
	kids = append(kids, slots(beltList(), f)...)
	kids = append(kids, num("FHAG", f.ramp), num("MHAG", f.tech))
	if f.vips > 0 {
		kids = append(kids, num("VIPP", f.vips), num("VIPR", 2), f.vip())
	}
	return kids
}

func (f *flight) vip() element {
	return group("VIPF", el("VPCD", vipCode(f.id)), num("VFES", f.vips))
}

// vipCode is an invented key of VIPL.
func vipCode(flid int64) string {
	const persons = 40
	return fmt.Sprintf("VC2600%02d", flid%persons)
}

// linked are the elements of the turnaround link.
func (f *flight) linked() []element {
	return []element{el("TAOP", f.link.airline), el("TAFL", f.link.number), num("TAID", f.link.id)}
}

// neighbours is the list ROUT: every other station with the time the aircraft leaves or reaches it.
func (f *flight) neighbours() []element {
	var out []element
	for i, s := range f.route {
		out = append(out, numbered("ROUT", "RTNO", i+1, el("APCD", s.code), f.there(s)))
	}
	return out
}

// there is the scheduled time at another station.
func (f *flight) there(s station) element {
	if f.arrives {
		return when("SCDT", f.sodt.Add(-minutes(s.fly)))
	}
	return when("SCAT", f.sodt.Add(minutes(s.fly)))
}

// wholeRoute is the list ERUT, this airport included.
func (f *flight) wholeRoute() []element {
	var points []element
	point := func(kids ...element) {
		points = append(points, numbered("ERUT", "RTNO", len(points)+1, kids...))
	}
	if f.arrives {
		for _, s := range f.route {
			point(el("APCD", s.code), f.there(s))
		}
		point(el("APCD", homeCode), when("SCAT", f.sodt))
		return points
	}
	point(el("APCD", homeCode), when("SCDT", f.sodt))
	const stop = 50 // minutes on the ground between two legs
	for i, s := range f.route {
		kids := []element{el("APCD", s.code), f.there(s)}
		if i+1 < len(f.route) {
			kids = append(kids, when("SCDT", f.sodt.Add(minutes(s.fly+stop))))
		}
		point(kids...)
	}
	return points
}

// stands is the list PSDT.
func (f *flight) stands() []element {
	var out []element
	for i, s := range f.stays {
		out = append(out, numbered("PSDT", "PSNO", i+1, el("PSST", s.stand.code), when("STST", s.from), when("STET", s.to)))
	}
	return out
}

// slotList names the elements of one of the four lists that look alike, and where a flight keeps it.
type slotList struct {
	name, number, code, class string
	from, to, began, ended    string
	indicator                 string
	of                        func(*flight) []slot
}

func gateList() slotList {
	return slotList{"GTDT", "GTNO", "GATE", "", "PGOT", "PGCT", "GOTM", "GCTM", "GTYP", func(f *flight) []slot { return f.gates }}
}

func counterList() slotList {
	return slotList{"CKDT", "CKNO", "CHKC", "CCLS", "PCOT", "PCCT", "COTM", "CCTM", "CTYP", func(f *flight) []slot { return f.counters }}
}

func beltList() slotList {
	return slotList{"CLDT", "CLNO", "BELT", "BCLS", "PCOT", "PCCT", "FBAG", "LBAG", "BTYP", func(f *flight) []slot { return f.belts }}
}

func chuteList() slotList {
	return slotList{"CHDT", "CHNO", "CHUT", "CCLS", "PCBT", "PCET", "CBTM", "CETM", "CTYP", func(f *flight) []slot { return f.chutes }}
}

// slots writes one of the lists; times that have not come are left out.
func slots(l slotList, f *flight) []element {
	var out []element
	for i, s := range l.of(f) {
		kids := filled(el(l.code, s.code), el(l.class, s.class), when(l.from, s.from), when(l.to, s.to),
			when(l.began, s.began), when(l.ended, s.ended), el(l.indicator, f.indicator()))
		out = append(out, numbered(l.name, l.number, i+1, kids...))
	}
	return out
}

// flop is a FLOP about f with the elements of its sub type.
func (f *flight) flop(styp string, payload ...element) *draft {
	kids := append([]element{num("FLID", f.id), el("FFID", f.ffid())}, payload...)
	return &draft{typ: "FLOP", styp: styp, body: []element{group("FLOP", kids...)}}
}

// schedule is a SCHD with these flights.
func schedule(styp string, flights []*flight) *draft {
	kids := []element{num("RECS", len(flights))}
	for _, f := range flights {
		kids = append(kids, f.record())
	}
	return &draft{typ: "SCHD", styp: styp, body: []element{group("SCHD", kids...)}}
}
