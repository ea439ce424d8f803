package sis

import "slices"

// flopKinds are the 50 rows of the dictionary's section 7, in its order.
func flopKinds(elements map[string]*Element) []Kind {
	b := flopRows{elements}
	rows := slices.Concat(b.lists(), b.groups(), b.moments(), b.texts())
	for i := range rows {
		rows[i].TYPE = TypeFLOP
	}
	return rows
}

// flopRows builds rows out of the elements of a flight record.
type flopRows struct{ elements map[string]*Element }

// row is a kind with one payload element of its own name.
func (b flopRows) row(styp string, mode Mode, absent, empty Effect, rules string) Kind {
	e := b.elements[styp]
	return Kind{STYP: styp, Mode: mode, Payload: []Payload{{Element: e, Absent: absent, Empty: empty}}, Rules: rules, Meaning: e.Meaning}
}

// group is a kind with several payload elements that are all cleared when absent or empty.
func (b flopRows) group(styp string, bond Bond, meaning, rules string, elems ...string) Kind {
	k := Kind{STYP: styp, Mode: Group, Bond: bond, Rules: rules, Meaning: meaning}
	for _, e := range elems {
		k.Payload = append(k.Payload, Payload{Element: b.elements[e], Absent: Clear, Empty: Clear})
	}
	return k
}

func (b flopRows) lists() []Kind {
	rows := []Kind{
		b.row("ABTM", Replace, Refuse, Clear, ""),
		b.row("CHDT", Replace, Refuse, Clear, ""),
		b.row("CHOT", Replace, Refuse, Clear, ""),
		b.row("CKDT", Replace, Refuse, Clear, ""),
		b.row("CLDT", Replace, Refuse, Clear, ""),
		b.row("GTDT", Replace, Refuse, Clear, ""),
		b.row("PSDT", Replace, Refuse, Clear, "does not touch STND"),
		b.row("DELY", Merge, Refuse, Clear, "CODE missing while another value is there !; DURA not four digits !"),
		b.row("SRVT", Merge, Refuse, Clear, "SRTC or SRQT missing in a filled entry !; an entry is replaced as a whole"),
		b.row("ERUT", Merge, Refuse, Clear, "RTNO or APCD missing in a filled entry !"),
		b.row("VIPF", Merge, Keep, Keep, "an entry without VPCD is skipped; VIPT inside is not applied"),
		b.row("PSHT", Patch, Refuse, Keep, "PSTM empty: clears time and indicator of that stand"),
		b.row("TIPT", Patch, Refuse, Keep, "TRTM empty: clears it for that stand"),
	}
	for i := range rows {
		rows[i].Payload[0].Lenient = rows[i].STYP == "VIPF"
	}
	return rows
}

func (b flopRows) groups() []Kind {
	status := b.group("EXSS", FirstRule, "external status, remark", "there is no EXSS element; EXSC empty: clears both", "EXSC", "EXSR")
	status.Payload[0].Absent = Refuse
	return []Kind{
		b.row("PORT", Set, Refuse, Refuse, "POID missing !; POTM empty: clears the time of that POID; POID other than O, C: no change"),
		b.group("HNAG", Loose, "handling agents", "each absent or empty one is cleared, so always all three", "FHAG", "PHAG", "MHAG"),
		b.group("TAOP", AllOrNone, "turnaround link", "any of the three absent or empty: all cleared", "TAOP", "TAFL", "TAID"),
		b.group("VIPP", Loose, "VIP count, rank", "each on its own", "VIPP", "VIPR"),
		status,
		b.row("FDIV", Group, Clear, Clear, "DDES empty or missing: clears all; DDES filled and DDIR not TO or FROM !"),
		b.row("FRET", Group, Clear, Clear, "text but no REID !; REID not A or G !; REID with no text: reason is cleared"),
		b.row("FLAB", Group, Clear, Clear, "text but no ARES !; ARES not O or G !; ARES with no text: reason is cleared"),
	}
}

func (b flopRows) moments() []Kind {
	var rows []Kind
	for _, styp := range []string{
		"APPT", "BOTM", "CNCL", "EGSR", "EGST", "FINT", "LACL", "COBT", "CTOT", "EOBT", "TOBT", "IEST",
		"PEDT", "PADT", "NEAT", "NAAT", "ESTT", "ACTT",
	} {
		rows = append(rows, b.row(styp, Set, Clear, Clear, ""))
	}
	return rows
}

func (b flopRows) texts() []Kind {
	return []Kind{
		b.row("FTSS", Set, Refuse, Clear, ""),
		b.row("REMC", Set, Refuse, Clear, ""),
		b.row("RENO", Set, Refuse, Clear, ""),
		b.row("RUNW", Set, Refuse, Clear, ""),
		b.row("STND", Set, Refuse, Clear, "does not touch PSDT"),
		b.row("TRML", Set, Refuse, Clear, ""),
		b.row("ACFT", Set, Refuse, Refuse, "mandatory for a flight"),
		b.row("FLTY", Set, Refuse, Refuse, "mandatory for a flight"),
		b.row("FLIN", Set, Refuse, Refuse, "mandatory for a flight"),
		b.row("MAXP", Set, Refuse, Refuse, ""),
		{
			STYP: "FDEL", Mode: Remove, Rules: "any text in FDEL !", Meaning: "flight deleted",
			Payload: []Payload{{Element: &Element{Name: "FDEL", Meaning: "flight deleted"}, Absent: Delete, Empty: Delete}},
		},
	}
}
