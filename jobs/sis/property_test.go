package sis_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// anyText is text as a value has it: trimmed, not empty, whatever XML and JSON must escape.
func anyText() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Z0-9名行<>&"'\]\\；]([ \n\ta-zA-Z0-9名<>&"']{0,10}[A-Z0-9名；<>&"'\]])?`)
}

// anyValue is a filled value of a field.
func anyValue(f sis.Field) *rapid.Generator[sis.Value] {
	return rapid.Custom(func(t *rapid.T) sis.Value {
		if f.OneOf != nil {
			return sis.TextValue(rapid.SampledFrom(f.OneOf).Draw(t, f.Name))
		}
		switch f.Form {
		case sis.FormText, sis.FormCode:
			return sis.TextValue(anyText().Draw(t, f.Name))
		case sis.FormID:
			return sis.NumberValue(rapid.Int64Range(0, 999_999_999_999).Draw(t, f.Name))
		case sis.FormInteger:
			return sis.NumberValue(rapid.Int64().Draw(t, f.Name))
		case sis.FormQuantity:
			return sis.NumberValue(rapid.Int64Range(0, 127).Draw(t, f.Name))
		case sis.FormNumber:
			return sis.NumberValue(rapid.Int64Range(1, 127).Draw(t, f.Name))
		case sis.FormDuration:
			return sis.NumberValue(rapid.Int64Range(0, 99*60+99).Draw(t, f.Name))
		case sis.FormFlag:
			return sis.TextValue(rapid.SampledFrom([]string{"Y", "N"}).Draw(t, f.Name))
		case sis.FormDecimal:
			return sis.Value{Type: sis.Decimal, Str: rapid.StringMatching(`-?[1-9][0-9]{0,8}(\.[0-9][1-9])?`).Draw(t, f.Name)}
		case sis.FormDateTime:
			from, to := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2099, 12, 30, 0, 0, 0, 0, time.UTC)
			return sis.MomentValue(time.Unix(rapid.Int64Range(from.Unix()/60, to.Unix()/60).Draw(t, f.Name)*60, 0))
		}
		t.Fatalf("no such form %s", f.Form)
		return sis.Value{}
	})
}

// drawFields draws filled values; what is not mandatory may be left out. Nil when there are none.
func drawFields(t *rapid.T, specs []sis.Field, led bool) sis.Fields {
	var out sis.Fields
	for i, f := range specs {
		if led && i > 0 && out == nil {
			break
		}
		if f.Mandatory || rapid.Bool().Draw(t, f.Name+"?") {
			if out == nil {
				out = sis.Fields{}
			}
			out[f.Name] = anyValue(f).Draw(t, f.Name)
		}
	}
	return out
}

func drawEntries(t *rapid.T, l sis.ListSpec, schedule bool) []sis.Entry {
	keys := rapid.SliceOfNDistinct(anyValue(l.Key), 1, 4, rapid.ID[sis.Value]).Draw(t, "keys")
	var out []sis.Entry
	for _, key := range keys {
		e := sis.Entry{Key: key.Str}
		if l.Numbered() {
			e.Key = strconv.FormatInt(key.Num, 10)
		}
		e.Fields = drawFields(t, l.Fields, l.Led)
		for n := rapid.IntRange(0, 2).Draw(t, "subs"); n > 0 && l.Sub != nil && schedule; n-- {
			if sub := drawFields(t, l.Sub, false); sub != nil {
				e.Sub = append(e.Sub, sub)
			}
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b sis.Entry) int {
		if l.Numbered() && len(a.Key) != len(b.Key) {
			return len(a.Key) - len(b.Key)
		}
		return strings.Compare(a.Key, b.Key)
	})
	return out
}

// drawList draws what a message can say of a list.
func drawList(t *rapid.T, l sis.ListSpec, schedule bool) sis.List {
	if rapid.IntRange(0, 4).Draw(t, "clear") == 0 && (schedule || l.Mode != sis.Patch && l.Name != "vipf") {
		return sis.List{Clear: true}
	}
	return sis.List{Clear: l.Mode == sis.Replace || schedule && l.Mode != sis.Patch, Entries: drawEntries(t, l, schedule)}
}

func setList(r *sis.Record, name string, l sis.List) {
	if r.Lists == nil {
		r.Lists = map[string]sis.List{}
	}
	r.Lists[name] = l
}

// drawScalars draws the values of one element: filled, or all empty where that may be.
func drawScalars(t *rapid.T, out sis.Fields, fields []sis.Field, mayClear bool) {
	if fields[0].Group == "port" {
		for _, f := range fields {
			if rapid.Bool().Draw(t, f.Name+"?") {
				out[f.Name] = rapid.OneOf(rapid.Just(sis.Value{}), anyValue(f)).Draw(t, f.Name)
			}
		}
		return
	}
	clears := mayClear && rapid.IntRange(0, 3).Draw(t, "clear") == 0
	for _, f := range fields {
		switch {
		case clears, f.Name != fields[0].Name && f.OneOf == nil && rapid.Bool().Draw(t, f.Name+" empty"):
			out[f.Name] = sis.Value{}
		default:
			out[f.Name] = anyValue(f).Draw(t, f.Name)
		}
	}
}

// elements are the elements of the catalogue's scalars, each with its fields.
func elements() [][]sis.Field {
	var out [][]sis.Field
	for _, f := range sis.ScalarSpecs() {
		if n := len(out); n > 0 && out[n-1][0].Elem == f.Elem {
			out[n-1] = append(out[n-1], f)
			continue
		}
		out = append(out, []sis.Field{f})
	}
	return out
}

func drawFltr(t *rapid.T, flid int64) sis.Record {
	r := sis.Record{FLID: flid, Fields: sis.Fields{}}
	for _, fields := range elements() {
		if fields[0].Mandatory || rapid.Bool().Draw(t, fields[0].Elem) {
			drawScalars(t, r.Fields, fields, !fields[0].Mandatory)
		}
	}
	for _, l := range sis.ListSpecs() {
		if rapid.IntRange(0, 2).Draw(t, l.Name) == 0 {
			setList(&r, l.Name, drawList(t, l, true))
		}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`new[a-z]`), 0, 2, rapid.ID[string]).Draw(t, "ext") {
		if r.Ext == nil {
			r.Ext = map[string]json.RawMessage{}
		}
		r.Ext[name] = json.RawMessage(rapid.SampledFrom([]string{
			`""`, `"plain"`, `["a","b"]`, `{"a":"1","text":"x"}`, `[{"a":"1"},"b"]`, `{"kid":["x",{"deep":"er"}],"text":"y"}`,
		}).Draw(t, "value"))
	}
	return r
}

func drawFlop(t *rapid.T, k *sis.Kind, flid int64) sis.Record {
	r := sis.Record{FLID: flid, Fields: sis.Fields{}, Delete: k.Mode == sis.Remove}
	clears := k.Bond == sis.AllOrNone && rapid.Bool().Draw(t, "none")
	for _, p := range k.Payload {
		switch {
		case p.List != nil:
			if l := drawList(t, *p.List, false); !p.Lenient || len(l.Entries) > 0 {
				setList(&r, p.List.Name, l)
			}
		case p.Fields != nil:
			drawScalars(t, r.Fields, p.Fields, p.Empty == sis.Clear && k.Bond == sis.Loose)
		}
	}
	if clears {
		for name := range r.Fields {
			r.Fields[name] = sis.Value{}
		}
	}
	return r
}

func drawReference(t *rapid.T, k *sis.Kind) *sis.Reference {
	r := &sis.Reference{Spec: k.Reference}
	for _, key := range rapid.SliceOfNDistinct(anyValue(*k.Reference.Key), 0, 3, rapid.ID[sis.Value]).Draw(t, "keys") {
		rec := sis.ReferenceRecord{Key: key.Str}
		if key.Type == sis.Number {
			rec.Key = strconv.FormatInt(key.Num, 10)
		}
		if k.Mode != sis.Drop {
			drawReferenceRecord(t, &rec, k.Reference)
		}
		r.Records = append(r.Records, rec)
	}
	return r
}

func drawReferenceRecord(t *rapid.T, rec *sis.ReferenceRecord, s *sis.ReferenceSpec) {
	rec.Fields = sis.Fields{}
	for _, e := range s.Elements[1:] {
		if e.Card != "*" {
			for name, v := range drawFields(t, e.Fields, false) {
				rec.Fields[name] = v
			}
			continue
		}
		for n := rapid.IntRange(0, 2).Draw(t, e.Name); n > 0; n-- {
			entry := drawFields(t, e.Fields, false)
			if entry == nil {
				continue
			}
			if rec.Lists == nil {
				rec.Lists = map[string][]sis.Fields{}
			}
			rec.Lists[e.JSON()] = append(rec.Lists[e.JSON()], entry)
		}
	}
}

// drawMessage draws a message; kinds about flights and lists are as frequent as each other.
func drawMessage(t *rapid.T) sis.Message {
	lists := rapid.Bool().Draw(t, "reference")
	kinds := slices.DeleteFunc(slices.Collect(sis.Catalogue()), func(k *sis.Kind) bool { return (k.Reference != nil) != lists })
	k := rapid.SampledFrom(kinds).Draw(t, "kind")
	m := sis.Message{Spec: k, Meta: message.Meta{
		SNDR: anyText().Draw(t, "sndr"), SEQN: rapid.Int64Range(0, 999_999).Draw(t, "seqn"), TYPE: k.TYPE, STYP: k.STYP,
		DTTM: time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "dttm"), 0),
	}}
	if k.Reference != nil {
		m.Reference = drawReference(t, k)
		return m
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "records") {
		if k.TYPE == sis.TypeFLOP {
			m.Records = append(m.Records, drawFlop(t, k, int64(i+1)))
		} else {
			m.Records = append(m.Records, drawFltr(t, int64(i+1)))
		}
	}
	return m
}

// encodesAndDecodes: what is decoded of an encoded message is the message, whatever it says.
func encodesAndDecodes(zone *time.Location) func(*rapid.T) {
	return func(t *rapid.T) {
		m := drawMessage(t)
		text := sis.Encode(m, zone)
		again, err := sis.Decode(text, sis.Options{Zone: zone})
		require.NoError(t, err, "%s", text)
		require.Empty(t, cmp.Diff(said(m), said(again)), "%s", text)
		rendered := sis.RenderDecoded(m, nil, zone)
		require.True(t, json.Valid(rendered))
		var written bytes.Buffer
		require.NoError(t, sis.WriteDecoded(&written, m, nil, zone))
		require.Equal(t, string(rendered), written.String())
	}
}

func TestDecodeOfEncodeIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, encodesAndDecodes(shanghai(t)))
}

// TestLayoutDoesNotMatter: white space, comments, unknown elements and the order of children change nothing (Q19, rule 8).
func TestLayoutDoesNotMatter(t *testing.T) {
	t.Parallel()
	zone := shanghai(t)
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		text := string(sis.Encode(m, zone))
		filler := rapid.SampledFrom([]string{"\n\t", "<!-- c -->", "<?pi x?>", " \r\n "}).Draw(t, "filler")
		spaced := strings.ReplaceAll(text, "><", ">"+filler+"<")
		again, err := sis.Decode([]byte(spaced), sis.Options{Zone: zone})
		require.NoError(t, err, "%s", spaced)
		require.Empty(t, cmp.Diff(said(m), said(again)), "%s", spaced)
	})
}
