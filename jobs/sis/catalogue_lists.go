package sis

import (
	"slices"
	"strings"
)

// The tables in the files catalogue_*.go are the dictionary's sections 5 to 7, row by row.

const (
	must     = true
	optional = false
)

const dateTimeSize = 11 // ddMMMyyHHmm

// child is a field that is the text of an element inside an entry.
func child(elem string, form Form, size int, mandatory bool, meaning string) Field {
	name := strings.ToLower(elem)
	return Field{Name: name, JSON: name, Elem: elem, Form: form, Max: size, Mandatory: mandatory, Meaning: meaning}
}

// when is an optional time inside an entry.
func when(elem, meaning string) Field {
	return child(elem, FormDateTime, dateTimeSize, optional, meaning)
}

// attribute is a field that is an attribute of the entry itself.
func attribute(attr string, form Form, size int, mandatory bool, meaning string) Field {
	f := child(attr, form, size, mandatory, meaning)
	f.Elem, f.Attr = "", attr
	return f
}

// number is the key of a numbered list.
func number(attr string) Field { return attribute(attr, FormNumber, 0, must, "entry number") }

// listSpecs are the lists of a flight record.
func listSpecs() []ListSpec {
	specs := slices.Concat(routeLists(), resourceLists(), keyedLists(), standLists())
	for i := range specs {
		specs[i].Name = strings.ToLower(specs[i].Elem)
	}
	return specs
}

func routeLists() []ListSpec {
	point := func(elem string, mode Mode, size int, meaning string) ListSpec {
		return ListSpec{
			Elem: elem, Mode: mode, Key: number("RTNO"), Meaning: meaning,
			Fields: []Field{
				child("APCD", FormCode, size, must, "station"),
				when("SCAT", "scheduled arrival there"), when("SCDT", "scheduled departure there"),
			},
		}
	}
	return []ListSpec{
		point("ROUT", Replace, 3, "neighbouring stations"),
		point("ERUT", Merge, 8, "whole route, this airport included"),
	}
}

func resourceLists() []ListSpec {
	letter := func(elem, meaning string) Field { return child(elem, FormCode, 1, optional, meaning) }
	return []ListSpec{
		{Elem: "CHDT", Mode: Replace, Key: number("CHNO"), Meaning: "chutes", Fields: []Field{
			child("CHUT", FormCode, 8, must, "chute"), letter("CCLS", "class"),
			when("PCBT", "planned begin"), when("PCET", "planned end"),
			when("CBTM", "actual begin"), when("CETM", "actual end"), letter("CTYP", "D or I"),
		}},
		{Elem: "GTDT", Mode: Replace, Key: number("GTNO"), Meaning: "gates", Fields: []Field{
			child("GATE", FormCode, 8, must, "gate"),
			when("PGOT", "planned open"), when("PGCT", "planned close"),
			when("GOTM", "actual open"), when("GCTM", "actual close"), letter("GTYP", "D or I"),
		}},
		{Elem: "PSDT", Mode: Replace, Key: number("PSNO"), Meaning: "planned stands", Fields: []Field{
			child("PSST", FormCode, 8, must, "stand"), when("STST", "from"), when("STET", "to"),
		}},
		{Elem: "CKDT", Mode: Replace, Key: number("CKNO"), Meaning: "check-in counters", Fields: []Field{
			child("CHKC", FormCode, 8, must, "counter"), letter("CCLS", "class"),
			when("PCOT", "planned open"), when("PCCT", "planned close"),
			when("COTM", "actual open"), when("CCTM", "actual close"), letter("CTYP", "D or I"),
		}},
		{Elem: "CLDT", Mode: Replace, Key: number("CLNO"), Meaning: "reclaim belts", Fields: []Field{
			child("BELT", FormCode, 8, must, "belt"), letter("BCLS", "class"),
			when("PCOT", "planned open"), when("PCCT", "planned close"),
			when("FBAG", "first bag"), when("LBAG", "last bag"), letter("BTYP", "D or I"),
		}},
		{Elem: "CHOT", Mode: Replace, Key: number("CSNO"), Meaning: "chocks", Fields: []Field{
			child("CHTM", FormDateTime, dateTimeSize, must, "when"),
			child("CHID", FormCode, 3, must, "ON or OFF"), child("CHST", FormCode, 8, must, "stand"),
		}},
		{Elem: "ABTM", Mode: Replace, Key: number("ASNO"), Meaning: "airbridge use", Fields: []Field{
			child("ABDG", FormCode, 8, must, "airbridge"), child("ABOP", FormCode, 1, must, "A attached, D detached"),
			child("AOTM", FormDateTime, dateTimeSize, must, "when"),
		}},
	}
}

func keyedLists() []ListSpec {
	dura := attribute("DURA", FormDuration, 4, optional, "duration")
	dura.JSON = "duraMinutes"
	return []ListSpec{
		{Elem: "DELY", Mode: Merge, Key: attribute("CODE", FormCode, 3, must, "delay code"), Meaning: "delays", Fields: []Field{
			attribute("STRT", FormDateTime, dateTimeSize, optional, "start"), dura,
			{Name: "text", JSON: "text", Form: FormText, Max: 80, Meaning: "reason"},
		}},
		{Elem: "SRVT", Mode: Merge, Key: child("SRTC", FormCode, 4, must, "service"), Meaning: "services", Fields: []Field{
			child("SRQT", FormQuantity, 0, must, "quantity"), when("SRST", "start"), when("SRET", "end"),
			child("SRPR", FormInteger, 0, optional, "provider"),
			child("SANR", FormCode, 8, optional, "abnormal reason"), child("SARR", FormText, 256, optional, "its remark"),
		}},
		{
			Elem: "VIPF", Mode: Merge, Key: child("VPCD", FormCode, 10, must, "VIP"), Meaning: "VIP persons",
			Fields: []Field{child("VFES", FormInteger, 0, optional, "party size")},
			Sub: []Field{
				child("VSCD", FormCode, 10, optional, "VIP service"), child("VTQY", FormInteger, 0, optional, "quantity"),
				when("VTST", "start"), when("VTET", "end"),
			},
		},
	}
}

// standLists are kept with the PSDT entry of their stand.
func standLists() []ListSpec {
	return []ListSpec{
		{Elem: "PSHT", Mode: Patch, Key: child("PUST", FormCode, 8, must, "stand"), Led: true, Meaning: "push-back", Fields: []Field{
			when("PSTM", "push-back time"), child("PSID", FormCode, 3, optional, "indicator"),
		}},
		{Elem: "TIPT", Mode: Patch, Key: child("TRST", FormCode, 8, must, "stand"), Led: true, Meaning: "tractor in place", Fields: []Field{
			when("TRTM", "tractor in place"),
		}},
	}
}
