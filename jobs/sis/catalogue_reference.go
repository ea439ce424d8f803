package sis

import (
	"slices"
	"strings"
)

// The sub types of reference messages (dictionary 9).
const (
	stypComplete = "DNLD"
	stypAnswer   = "RESP"
	stypAdd      = "ADD"
	stypUpdate   = "UPD"
	stypDelete   = "DEL"
)

// ReferenceSpec is one list of reference data.
type ReferenceSpec struct {
	Type     string    // TYPE of its messages and element of its records: "SLST"
	Key      *Field    // what tells records apart; the field of the first of Elements
	Elements []Element // of a record in wire order; Card is 1 for the key, * for what may repeat, else ?
	Personal bool      // what it says is about persons: never to be logged
	Meaning  string
}

// referenceKinds are five kinds a list.
func referenceKinds(specs []ReferenceSpec) []Kind {
	var kinds []Kind
	for i := range specs {
		s := &specs[i]
		kinds = append(kinds,
			Kind{STYP: stypComplete, Mode: Complete, Meaning: s.Meaning + ": all there are"},
			Kind{STYP: stypAnswer, Mode: Complete, Answers: ReferenceRequest(s.Type), Meaning: s.Meaning + ": all there are, as an answer to RQRD", Rules: onlyOpen},
			Kind{STYP: stypAdd, Mode: Put, Meaning: s.Meaning + ": more of them"},
			Kind{STYP: stypUpdate, Mode: Put, Meaning: s.Meaning + ": changed ones"},
			Kind{STYP: stypDelete, Mode: Drop, Meaning: s.Meaning + ": those that are gone", Rules: "all but the key is passed over"},
		)
		for j := len(kinds) - 5; j < len(kinds); j++ {
			kinds[j].TYPE, kinds[j].Reference = s.Type, s
		}
	}
	return kinds
}

// referenceSpecs are the 23 rows of the dictionary's section 9, in its order.
func referenceSpecs() []ReferenceSpec {
	specs := slices.Concat(placeLists(), aircraftLists(), worldLists(), codeLists(), peopleLists())
	for i := range specs {
		key := &specs[i].Elements[0]
		key.Card, key.Fields[0].Mandatory = "1", must
		specs[i].Key = &key.Fields[0]
	}
	return specs
}

const nameSize, codeSize, descSize = 30, 8, 100 // of names, codes and descriptions nearly everywhere

func named(elem, meaning string) Element { return plain(elem, FormText, nameSize, meaning) }

func coded(elem string, size int, meaning string) Element {
	return plain(elem, FormCode, size, meaning)
}

func described(elem, meaning string) Element { return plain(elem, FormText, descSize, meaning) }

func flagged(elem, meaning string) Element { return plain(elem, FormFlag, 1, meaning) }

func counted(elem, meaning string) Element { return plain(elem, FormInteger, 0, meaning) }

func measured(elem, meaning string) Element { return plain(elem, FormDecimal, 0, meaning) }

// repeated is an element of which there may be any number. With one field it is a list of plain texts.
func repeated(elem, meaning string, fields ...Field) Element {
	return Element{Name: elem, Card: "*", Fields: fields, Meaning: meaning}
}

// ownText is the text of a repeated element.
func ownText(size int, meaning string) Field {
	return Field{Name: textMember, JSON: textMember, Form: FormText, Max: size, Meaning: meaning}
}

// place is a list of places that all say the same of themselves.
func place(typ, meaning, key, name, local, category, terminal string, more ...Element) ReferenceSpec {
	return ReferenceSpec{Type: typ, Meaning: meaning, Elements: append([]Element{
		coded(key, codeSize, "code"), named(name, "name"), named(local, "local name"), coded(category, 1, "category"), coded(terminal, 5, "terminal"),
	}, more...)}
}

func placeLists() []ReferenceSpec {
	return []ReferenceSpec{
		{Type: "SLST", Meaning: "stands", Elements: []Element{
			coded("SCOD", codeSize, "stand"), named("STNM", "name"), named("SNMC", "local name"),
			coded("SATC", 1, "biggest aircraft category"), coded("STGP", 30, "group"), measured("SWID", "width"), measured("SHGT", "length"),
			coded("STML", 5, "terminal"), counted("MABS", "bridges at most"), coded("DIGT", codeSize, "default international gate"),
			coded("DDGT", codeSize, "default domestic gate"), coded("REMT", 1, "kind: N contact, else remote"), flagged("FEPU", "fixed power"),
		}},
		place("GLST", "gates", "GCOD", "GTNM", "GNMC", "GCAT", "GTML", coded("PIER", codeSize, "pier")),
		place("BLST", "reclaim belts", "BCOD", "BTNM", "BNMC", "BCAT", "BTML"),
		place("CLST", "check-in counters", "CCOD", "CTNM", "CNMC", "CCAT", "CTML", flagged("CTRA", "transfer counter")),
		{Type: "TLST", Meaning: "terminals", Elements: []Element{
			coded("TCOD", 5, "terminal"), named("TNAM", "name"), named("TNMC", "local name"), coded("TCAT", 1, "category"), flagged("TPAX", "for passengers"),
		}},
		{Type: "ABDG", Meaning: "airbridges", Elements: []Element{
			coded("ABCD", codeSize, "airbridge"), named("DESC", "description"), named("CDSC", "local description"), measured("AHGT", "greatest height"),
			coded("ATML", 5, "terminal"), flagged("ATHE", "takes an A380"),
			repeated("STND", "its stands", ownText(codeSize, "stand")), repeated("GATE", "its gates", ownText(codeSize, "gate")), counted("AMNO", "arms"),
		}},
		{Type: "CHLT", Meaning: "chutes", Elements: []Element{
			coded("CCOD", codeSize, "chute"), named("CHNM", "name"), named("CNMC", "local name"), coded("CTML", 5, "terminal"), coded("CCAT", 1, "category"),
		}},
		place("PLST", "piers", "PCOD", "PRNM", "PNMC", "PCAT", "PTML"),
	}
}

func aircraftLists() []ReferenceSpec {
	return []ReferenceSpec{
		{Type: "AIRC", Meaning: "aircraft types", Elements: []Element{
			coded("ITAT", 3, "aircraft type, IATA"), coded("ICAT", 4, "ICAO code"), named("DESC", "description"), named("CDSC", "local description"),
			coded("CHAP", 1, "category letter"), counted("MAXP", "seats"), measured("MFWT", "freight weight"), measured("MTWT", "take-off weight"),
			measured("ALEN", "length"), measured("WSPN", "span"), measured("MHTM", "shortest turnaround"), counted("MABR", "bridges at most"),
		}},
		{Type: "REGN", Meaning: "registrations", Elements: []Element{
			coded("RNUM", 10, "registration"), coded("ITAT", 3, "aircraft type"), counted("OWID", "owner"), coded("ACAL", 3, "airline"),
			coded("ALSC", 10, "airline sub company"), counted("MAXP", "seats, unlike its type"),
			measured("MFWT", "freight weight, unlike its type"), measured("MTWT", "take-off weight, unlike its type"),
		}},
		{Type: "AIRL", Meaning: "airlines", Elements: []Element{
			coded("ITOP", 3, "airline, IATA"), coded("ICOP", 3, "ICAO code"), named("ONAM", "name"), named("ONMC", "local name"), coded("CTRY", 3, "country"),
			repeated("TRML", "default terminals", attribute("MVIN", FormCode, 1, optional, "A or D"), attribute("FLIN", FormCode, 1, optional, "I or D"), ownText(5, "terminal")),
			repeated("OGRP", "its groups", ownText(0, "group")),
			repeated("SUBC", "sub companies", child("CODE", FormCode, 10, optional, "sub company"),
				child("NAME", FormText, nameSize, optional, "name"), child("NAMC", FormText, nameSize, optional, "local name")),
			coded("DORI", 1, "D or I"),
		}},
	}
}

func worldLists() []ReferenceSpec {
	short := repeated("ABBR", "short names", attribute("CODE", FormCode, 4, optional, "ABR1 … ABR6"), ownText(nameSize, "short name"))
	return []ReferenceSpec{
		{Type: "ARPT", Meaning: "airports", Elements: []Element{
			coded("ITCD", 3, "airport, IATA"), coded("ICCD", 4, "ICAO code"), named("ANAM", "name"), named("ANMC", "local name"), counted("BDIS", "distance"),
			coded("CTRY", 3, "country"), coded("ACTY", 3, "city"), coded("ATYP", 1, "D or I"), coded("HAUL", 1, "haul"), short,
		}},
		{Type: "CITY", Meaning: "cities", Elements: []Element{
			coded("ITCD", 3, "city, IATA"), coded("ICCD", 4, "ICAO code"), named("CNAM", "name"), named("CNMC", "local name"), coded("CTRY", 3, "country"), short,
		}},
		{Type: "COUL", Meaning: "countries", Elements: []Element{
			coded("COUC", 3, "country"), named("COUN", "name"), named("CNMC", "local name"), repeated("REGC", "its regions", ownText(6, "region")),
		}},
		{Type: "REGL", Meaning: "regions", Elements: []Element{
			coded("REGC", 6, "region"), named("REGN", "name"), named("RGNC", "local name"),
		}},
	}
}

func codeLists() []ReferenceSpec {
	return []ReferenceSpec{
		{Type: "ABNR", Meaning: "reasons for an abnormal service", Elements: []Element{
			coded("ANRC", codeSize, "reason"), described("ANRD", "description"), described("ARDC", "local description"),
		}},
		{Type: "DLYL", Meaning: "delay codes", Elements: []Element{
			coded("DCOD", 3, "delay code"), counted("DCDN", "its numeric form"), described("DDES", "description"), described("DDSC", "local description"),
		}},
		{Type: "HLTR", Meaning: "kinds of service", Elements: []Element{
			coded("HLTC", 4, "service"), named("HLTD", "description"), named("HTDC", "local description"), coded("HLTT", 1, "T by time, Q by quantity"),
			coded("UMNM", 5, "unit"),
		}},
		{Type: "ORGN", Meaning: "organisations", Elements: []Element{
			counted("OGID", "organisation"), plain("ONAM", FormText, 40, "name"), plain("ONMC", FormText, 40, "local name"),
			repeated("OCAT", "its roles", ownText(0, "role")),
		}},
		{Type: "STTS", Meaning: "flight statuses", Elements: []Element{
			coded("STTC", codeSize, "status"), described("STTD", "description"), described("STDC", "local description"), flagged("ABNS", "abnormal"),
		}},
		{Type: "FLTL", Meaning: "flight types", Elements: []Element{
			coded("FTYP", 1, "flight type"), coded("CTYP", 3, "group"), named("FDES", "description"), named("FDSC", "local description"), flagged("FCML", "commercial"),
		}},
	}
}

func peopleLists() []ReferenceSpec {
	text := func(elem string, size int, meaning string) Element { return plain(elem, FormText, size, meaning) }
	return []ReferenceSpec{
		{Type: "VIPL", Personal: true, Meaning: "VIP persons", Elements: []Element{
			coded("VPCD", 10, "VIP"), text("VPNC", 40, "number"), text("VFNM", 40, "first name"), text("VLNM", 40, "last name"),
			text("VDES", 80, "description"), text("VDSC", 80, "local description"), text("VPON", 60, "position"), text("VRNK", 60, "rank"),
			text("VPTC", 60, "contact"), text("VCTN", 20, "telephone"), text("VCMN", 20, "mobile"), text("VRMK", 0, "remark"),
			text("VPWU", descSize, "work unit"), text("VPPS", 200, "wishes"),
		}},
		{Type: "VIPS", Meaning: "VIP services", Elements: []Element{
			coded("VSCD", 4, "VIP service"), named("VSDS", "description"), named("VSDC", "local description"), counted("VSQC", "counted or timed"),
			coded("VSUC", 5, "unit"),
		}},
	}
}

// ReferenceSpecs are the lists of reference data in the dictionary's order. The slice is shared: read only.
func ReferenceSpecs() []ReferenceSpec { return wire.references }

// Personal says that what messages of a TYPE bring is about persons: never to be logged, and shown to operators only.
func Personal(typ string) bool {
	s, ok := ReferenceByType(typ)
	return ok && s.Personal
}

// AboutPersons says that a text, whole or broken, names the records of a list about persons.
func AboutPersons(text string) bool {
	return slices.ContainsFunc(wire.references, func(s ReferenceSpec) bool { return s.Personal && strings.Contains(text, s.Type) })
}

// ReferenceByType finds a list of reference data by its TYPE, whatever its case.
func ReferenceByType(typ string) (*ReferenceSpec, bool) {
	s, ok := wire.byType[strings.ToUpper(typ)]
	return s, ok
}
