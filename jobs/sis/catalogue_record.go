package sis

import (
	"slices"
	"strings"
)

// The entries inside an entry of VIPF: their element, and their name in JSON.
const (
	subElem = "VIPT"
	subName = "vipt"
)

// recordElements are the children of FLTR but FLID, in wire order (dictionary 5), and the two known from FLOP only.
func recordElements(lists map[string]*ListSpec) []Element {
	list := func(name string) Element {
		l := lists[name]
		return Element{Name: l.Elem, Card: "*", List: l, Meaning: l.Meaning}
	}
	return slices.Concat(elementsToSTND(list), elementsFromPSDT(list))
}

func elementsToSTND(list func(string) Element) []Element {
	return []Element{
		mandatory("ALCD", FormCode, 3, "airline, IATA"),
		plain("ALSC", FormCode, 10, "airline sub company"),
		mandatory("FLNO", FormText, 12, "flight number, carrier code included"),
		mandatory("MVIN", FormCode, 1, "arrival or departure", "A", "D"),
		mandatory("SODT", FormDateTime, dateTimeSize, "scheduled time here"),
		mandatory("FLTY", FormCode, 1, "flight type"),
		mandatory("FLIN", FormCode, 1, "domestic, international, mixed, regional"),
		list("rout"),
		mandatory("ACFT", FormCode, 3, "aircraft type"),
		plain("RENO", FormText, 10, "registration"),
		plain("TAOP", FormCode, 3, "airline of the turnaround flight"),
		plain("TAFL", FormText, 12, "its flight number"),
		plain("TAID", FormID, 12, "its FLID"),
		plain("TRML", FormCode, 5, "terminal"),
		plain("MAXP", FormInteger, 0, "seats"),
		plain("CSOP", FormCode, 3, "code share: airline of the master"),
		plain("CSFT", FormText, 12, "code share: number of the master"),
		plain("MAID", FormID, 12, "code share: FLID of the master"),
		moments("ESTT", "estimated time here"),
		moments("ACTT", "actual time here"),
		list("chdt"), list("gtdt"),
		plain("STND", FormCode, 8, "current stand"),
	}
}

func elementsFromPSDT(list func(string) Element) []Element {
	return []Element{
		list("psdt"), list("ckdt"),
		plain("PHAG", FormInteger, 0, "passenger handling agent"),
		moments("CNCL", "cancelled at"),
		list("dely"),
		plain("REMC", FormText, 80, "remark"),
		list("cldt"),
		moments("BOTM", "boarding opened"),
		moments("LACL", "last call"),
		moments("FINT", "finals time"),
		list("chot"),
		moments("APPT", "approved time"),
		moments("EGSR", "engine start requested"),
		moments("EGST", "engine started"),
		plain("FHAG", FormInteger, 0, "ramp handling agent"),
		plain("MHAG", FormInteger, 0, "maintenance agent"),
		plain("VIPP", FormInteger, 3, "VIP passengers"),
		plain("VIPR", FormInteger, 2, "VIP rank"),
		diversion(),
		reasoned("FRET", "REID", "flight returned: in the air, on the ground", "A", "G"),
		list("abtm"),
		reasoned("FLAB", "ARES", "landing aborted: overshoot, go-around", "O", "G"),
		list("srvt"), list("vipf"),
		plain("LBNO", FormInteger, 3, "local bags"),
		plain("LBWT", FormDecimal, 11, "local bags, weight"),
		plain("PAXC", FormInteger, 3, "passengers"),
		list("erut"),
		plain("EXSC", FormCode, 8, "external status"),
		plain("EXSR", FormText, 256, "external status remark"),
		plain("FTSS", FormCode, 8, "flight status"),
		moments("PEDT", "previous station, estimated departure"),
		moments("PADT", "previous station, actual departure"),
		moments("NEAT", "next station, estimated arrival"),
		moments("NAAT", "next station, actual arrival"),
		door(),
		moments("COBT", "calculated off-block"),
		moments("TOBT", "target off-block"),
		moments("EOBT", "estimated off-block"),
		moments("IEST", "internal estimate"),
		plain("RUNW", FormCode, 8, "logical runway"),
		list("tipt"),
		moments("CTOT", "calculated take-off"),
		list("psht"),
	}
}

// plain is an element that is one value of the flight.
func plain(elem string, form Form, size int, meaning string) Element {
	return Element{Name: elem, Card: "?", Fields: []Field{child(elem, form, size, optional, meaning)}, Meaning: meaning}
}

// mandatory is plain, but must be there and filled.
func mandatory(elem string, form Form, size int, meaning string, oneOf ...string) Element {
	e := plain(elem, form, size, meaning)
	e.Card, e.Fields[0].Mandatory, e.Fields[0].OneOf = "1", must, oneOf
	return e
}

func moments(elem, meaning string) Element { return plain(elem, FormDateTime, dateTimeSize, meaning) }

// member is a value of a group: an attribute of its element, or with attr "" the text.
func member(elem, attr string, size int, meaning string, oneOf ...string) Field {
	group, key := strings.ToLower(elem), strings.ToLower(attr)
	f := Field{Group: group, JSON: key, Elem: elem, Attr: attr, Form: FormCode, Max: size, OneOf: oneOf, Meaning: meaning}
	if attr == "" {
		f.JSON, f.Form = "text", FormText
	}
	f.Name = group + "." + f.JSON
	return f
}

const reasonSize = 30

func diversion() Element {
	return Element{Name: "FDIV", Card: "?", Meaning: "diverted", Fields: []Field{
		member("FDIV", "DDES", 3, "other airport"),
		member("FDIV", "DDIR", 4, "diverted to or from it", "TO", "FROM"),
		member("FDIV", "", reasonSize, "reason"),
	}}
}

func reasoned(elem, attr, meaning string, oneOf ...string) Element {
	return Element{Name: elem, Card: "?", Strict: true, Meaning: meaning, Fields: []Field{
		member(elem, attr, 1, meaning, oneOf...),
		member(elem, "", reasonSize, "reason"),
	}}
}

// The children of PORT.
const (
	doorID   = "POID"
	doorTime = "POTM"
)

// door is PORT: two times of the flight, told apart by POID.
func door() Element {
	at := func(id, meaning string) Field {
		return Field{Name: "port." + id, Group: "port", JSON: id, Elem: "PORT", Form: FormDateTime, Max: dateTimeSize, Meaning: meaning}
	}
	return Element{Name: "PORT", Card: "*", Door: true, Meaning: "cabin door", Fields: []Field{
		at("o", "cabin door opened"), at("c", "cabin door closed"),
	}}
}
