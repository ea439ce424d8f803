package simulator

// lists are the reference downloads the schedule refers to: statuses, stands, airbridges (dictionary 9).
func (a *airport) lists() []draft {
	return []draft{
		list("STTS", statuses()),
		list("SLST", a.standRecords()),
		list("ABDG", a.bridgeRecords()),
	}
}

func list(typ string, records []element) draft {
	return draft{typ: typ, styp: "DNLD", body: append([]element{num("RECS", len(records))}, records...)}
}

func statuses() []element {
	status := func(code, english, chinese, abnormal string) element {
		return group("STTS", el("STTC", code), el("STTD", english), el("STDC", chinese), el("ABNS", abnormal))
	}
	return []element{
		status("SCH", "Scheduled", "计划", "N"), status("CKI", "Check-in open", "值机", "N"),
		status("BOR", "Boarding", "登机", "N"), status("DEP", "Departed", "起飞", "N"),
		status("ARR", "Landed", "到达", "N"), status("DLY", "Delayed", "延误", "Y"),
		status("CNL", "Cancelled", "取消", "Y"), status("RTN", "Returned", "返航", "Y"),
	}
}

func (a *airport) standRecords() []element {
	var out []element
	for _, s := range a.stands {
		category, kind := "C", "Y"
		if s.wide {
			category = "E"
		}
		if s.contact() {
			kind = "N"
		}
		out = append(out, group("SLST",
			el("SCOD", s.code), el("STNM", "Stand "+s.code), el("SNMC", s.code+"号机位"), el("SATC", category),
			el("STML", s.terminal), num("MABS", len(s.bridges)), el("DDGT", s.gate), el("REMT", kind), el("FEPU", "Y")))
	}
	return out
}

func (a *airport) bridgeRecords() []element {
	var out []element
	for _, s := range a.stands {
		for _, b := range s.bridges {
			out = append(out, group("ABDG",
				el("ABCD", b), el("DESC", "Bridge "+b[1:]), el("CDSC", b[1:]+"登机桥"), el("ATML", s.terminal), el("ATHE", "N"),
				el("STND", s.code), el("GATE", s.gate), num("AMNO", 1)))
		}
	}
	return out
}

func (a *airport) airlineRecords() []element {
	var out []element
	for _, l := range a.airlines {
		out = append(out, group("AIRL", el("ITOP", l.code), el("ONAM", "Airline "+l.code), el("ONMC", l.code+"航空")))
	}
	return out
}

func delayRecords() []element {
	var out []element
	seen := map[string]bool{}
	for _, c := range delayCauses() {
		if !seen[c.code] {
			seen[c.code] = true
			out = append(out, group("DLYL", el("DCOD", c.code), el("DDES", "Delay "+c.code), el("DDSC", c.code+"延误")))
		}
	}
	return out
}
