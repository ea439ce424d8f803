package store_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

func ctx() context.Context { return context.Background() } // rapid's T has none

// Generators of flights: any value the wire can bring, in any field of the catalogue.
var (
	words   = rapid.Map(rapid.StringN(1, 20, -1), func(s string) string { return "x" + strings.ReplaceAll(s, "\x00", "0") })
	moments = rapid.Map(rapid.Int64Range(946684800, 4102444800), func(s int64) sis.Value { return sis.Value{Type: sis.Moment, Num: s / 60 * 60} })
	places  = rapid.Custom(func(t *rapid.T) message.Position {
		return message.Position{Generation: rapid.Int32Range(0, 2).Draw(t, "generation"), ID: rapid.Int64Range(1, 1<<40).Draw(t, "id")}
	})
	instants = rapid.Map(rapid.Int64Range(1, 4102444800_000000), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
	exts     = rapid.Custom(func(t *rapid.T) json.RawMessage {
		return json.RawMessage(rapid.SampledFrom([]string{
			`"a < b & c > d"`, `{"z":"1","a":"飞","text":"x"}`, `["1",{"b":"2","a":"3"}]`, `"\u2028\"\\"`,
		}).Draw(t, "ext"))
	})
	flights = rapid.Custom(drawFlight)
)

func drawFlight(t *rapid.T) *flight.Flight {
	f := &flight.Flight{
		OperationDay: flight.Day(instants.Draw(t, "day").Format(time.DateOnly)),
		Version:      rapid.Int64Range(1, 1000).Draw(t, "version"),
		LastMessage:  places.Draw(t, "last"), CreatedBy: places.Draw(t, "created"), UpdatedAt: instants.Draw(t, "updated"),
		Published: rapid.Bool().Draw(t, "published"),
		MAFL:      rapid.SliceOfN(words, 0, 3).Draw(t, "mafl"),
		ABDG:      rapid.SampledFrom([]string{"", "212", "212,213"}).Draw(t, "abdg"),
		Scalars:   drawFields(t, sis.ScalarSpecs()),
		Lists:     map[string][]sis.Entry{},
		Ext:       rapid.MapOfN(words, exts, 0, 3).Draw(t, "ext"),
		Provenance: rapid.MapOfN(rapid.SampledFrom([]string{"stnd", "psdt", "dely.AT", "psht.20\"8", "ext.<a>"}), places, 0, 5).
			Draw(t, "provenance"),
	}
	if maid, found := f.Scalars["maid"]; found && maid.Num == 0 {
		delete(f.Scalars, "maid")
	}
	if rapid.Bool().Draw(t, "deleted") {
		f.DeletedBy, f.DeletedAt = places.Draw(t, "deleted by"), instants.Draw(t, "deleted at")
	}
	for _, l := range sis.ListSpecs() {
		if entries := drawList(t, &l); len(entries) > 0 {
			f.Lists[l.Name] = entries
		}
	}
	return f
}

func drawList(t *rapid.T, l *sis.ListSpec) []sis.Entry {
	keys := rapid.Map(rapid.IntRange(1, 127), strconv.Itoa)
	if !l.Numbered() {
		keys = rapid.OneOf(words, rapid.Map(rapid.IntRange(1, 400), strconv.Itoa))
	}
	var entries []sis.Entry
	for _, key := range rapid.SliceOfNDistinct(keys, 0, 4, rapid.ID).Draw(t, l.Name) {
		e := sis.Entry{Key: key, Fields: drawFields(t, l.Fields)}
		if l.Sub != nil {
			for range rapid.IntRange(0, 2).Draw(t, "subs") {
				e.Sub = append(e.Sub, drawFields(t, l.Sub))
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b sis.Entry) int { return flight.CompareKeys(a.Key, b.Key) })
	return entries
}

func drawFields(t *rapid.T, specs []sis.Field) sis.Fields {
	fields := sis.Fields{}
	for i := range specs {
		if f := &specs[i]; f.Mandatory || rapid.Bool().Draw(t, f.Name+" is there") {
			fields[f.Name] = drawValue(t, f)
		}
	}
	return fields
}

func drawValue(t *rapid.T, f *sis.Field) sis.Value {
	switch f.Type() {
	case sis.Text:
		return sis.TextValue(words.Draw(t, f.Name))
	case sis.Moment:
		return moments.Draw(t, f.Name)
	case sis.Decimal:
		return sis.Value{Type: sis.Decimal, Str: rapid.SampledFrom([]string{"0", "1234.5", "-0.25", "99999999999.99"}).Draw(t, f.Name)}
	case sis.Number:
		if f.Form == sis.FormQuantity {
			return sis.NumberValue(rapid.Int64Range(0, 127).Draw(t, f.Name))
		}
		if f.Form == sis.FormDuration {
			return sis.NumberValue(rapid.Int64Range(0, 5999).Draw(t, f.Name))
		}
		return sis.NumberValue(rapid.Int64Range(-1, 999999999999).Draw(t, f.Name))
	case sis.Empty:
	}
	panic("no such type")
}
