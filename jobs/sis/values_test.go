package sis_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// says decodes a flight with one more element and gives the value of it.
func says(t *testing.T, elem, text string) (sis.Value, error) {
	t.Helper()
	m, err := decode(t, fltr("<"+elem+">"+text+"</"+elem+">"))
	if err != nil {
		requireFault(t, err, fault.Protocol, "MSG/SCHD/FLTR[1]/"+elem)
		return sis.Value{}, err
	}
	for _, f := range sis.ScalarSpecs() {
		if f.Elem == elem {
			return m.Records[0].Fields[f.Name], nil
		}
	}
	t.Fatalf("no element %s", elem)
	return sis.Value{}, nil
}

func TestDateTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"15DEC031330":           "2003-12-15T05:30:00Z",
		"15Dec031330":           "2003-12-15T05:30:00Z",
		"15dec031330":           "2003-12-15T05:30:00Z",
		" \n15DEC031330\t":      "2003-12-15T05:30:00Z",
		"15D<!-- e -->EC031330": "2003-12-15T05:30:00Z",
		"29FEB280000":           "2028-02-28T16:00:00Z",
		"31DEC992359":           "2099-12-31T15:59:00Z",
		"01JAN000030":           "1999-12-31T16:30:00Z",
		"18MAR260030":           "2026-03-17T16:30:00Z", // the day before in UTC (K16)
	} {
		v, err := says(t, "ESTT", text)
		require.NoError(t, err, text)
		require.Equal(t, want, v.Time().Format(time.RFC3339), text)
	}
	for _, text := range []string{
		"29FEB270000", "31APR260900", "00MAR260900", "32MAR260900", "18MAR262400", "18MAR260960", "18MRZ260900", "18MAR2609",
		"18MAR26090000", "8MAR260900", "18 MAR260900", "2026-03-18T09:00", "18MAR26０900", "１８MAR260900", "+8MAR260900", "18MAR26-900", "0",
	} {
		_, err := says(t, "ESTT", text)
		require.Error(t, err, text)
	}
}

// K25: every time has its date, so that midnight needs no guess; a time alone is refused, not put on some day.
func TestK25_midnight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after string }{
		{"18MAR262355", "19MAR260010"}, {"31DEC262355", "01JAN270010"}, {"28FEB282355", "29FEB280010"},
	} {
		before, err := says(t, "ESTT", c.before)
		require.NoError(t, err)
		after, err := says(t, "ESTT", c.after)
		require.NoError(t, err)
		require.Equal(t, 15*time.Minute, after.Time().Sub(before.Time()), c.after)
	}
	for _, alone := range []string{"0010", "2355", "00:10", "18MAR26"} {
		_, err := says(t, "ESTT", alone)
		require.Error(t, err, alone)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"186": 186, "0186": 186, "+5": 5, "-5": -5, "0": 0, "9223372036854775807": 1<<63 - 1} {
		v, err := says(t, "MAXP", text)
		require.NoError(t, err, text)
		require.Equal(t, sis.NumberValue(want), v)
	}
	for _, text := range []string{"1 8", "1.0", "1e3", "0x10", "--5", "-", "+", "9223372036854775808", "１", "1,000"} {
		_, err := says(t, "MAXP", text)
		require.Error(t, err, text)
	}
	for text, want := range map[string]string{
		"1234.5": "1234.5", "01234.50": "1234.5", "+7": "7", "-0.50": "-0.5", "0": "0", "-0.0": "0", "000": "0", "10.00": "10", "100": "100",
	} {
		v, err := says(t, "LBWT", text)
		require.NoError(t, err, text)
		require.Equal(t, sis.Value{Type: sis.Decimal, Str: want}, v)
	}
	for _, text := range []string{".", "1.", ".5", "1,5", "1.2.3", "-", "1e3", "NaN", "0123456789012345678901234567890"} {
		_, err := says(t, "LBWT", text)
		require.Error(t, err, text)
	}
}

func TestValuesOfTheAirport(t *testing.T) {
	t.Parallel()
	require.Equal(t, sis.Value{}, sis.TextValue(""))
	require.True(t, sis.TextValue("").IsEmpty())
	at := time.Date(2026, 3, 18, 9, 25, 30, 999, time.UTC)
	require.Equal(t, at.Truncate(time.Second), sis.MomentValue(at).Time())
	require.True(t, sis.NumberValue(7).Time().IsZero())
	m, err := sis.Decode([]byte(msg(goodMeta+goodBody)), sis.Options{}) // no zone is UTC
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 3, 18, 8, 30, 15, 0, time.UTC), m.Meta.DTTM)
}

func TestJSONBothWays(t *testing.T) {
	t.Parallel()
	zone := shanghai(t)
	for _, c := range []struct {
		value sis.Value
		json  string
	}{
		{sis.Value{}, `null`},
		{sis.TextValue(`a "b" \ <c> & 名` + "\n\t\r\x01\u2028"), `"a \"b\" \\ <c> & 名\n\t\u000d\u0001` + "\u2028" + `"`},
		{sis.MomentValue(time.Date(2026, 11, 30, 1, 3, 0, 0, time.UTC)), `"2026-11-30T09:03:00+08:00"`},
		{sis.NumberValue(-105), `-105`},
		{sis.Value{Type: sis.Decimal, Str: "1234.5"}, `1234.5`},
	} {
		got := sis.AppendJSON(nil, c.value, zone)
		require.Equal(t, c.json, string(got))
		require.True(t, json.Valid(got))
		back, err := sis.ParseJSON(c.value.Type, got)
		if c.value.IsEmpty() {
			back, err = sis.ParseJSON(sis.Text, got)
		}
		require.NoError(t, err)
		require.Equal(t, c.value, back)
	}
	require.Equal(t, "\"a\uFFFDb\"", string(sis.AppendJSON(nil, sis.TextValue("a\xffb"), nil)))
	for typ, raw := range map[sis.Type]string{sis.Text: `1`, sis.Moment: `"today"`, sis.Number: `1.5`, sis.Decimal: `"1"`, sis.Empty: `1`} {
		_, err := sis.ParseJSON(typ, json.RawMessage(raw))
		require.Error(t, err, raw)
	}
}

func TestScalarsAsJSON(t *testing.T) {
	t.Parallel()
	fields := sis.Fields{
		"stnd": sis.TextValue("208"), "lbwt": {Type: sis.Decimal, Str: "0.5"}, "taid": sis.NumberValue(1 << 60), "estt": sis.MomentValue(time.Unix(1773797100, 0)),
		"fdiv.ddes": sis.TextValue("HKG"), "fdiv.ddir": sis.TextValue("TO"), "port.c": sis.MomentValue(time.Unix(1773797160, 0)), "ctot": {},
	}
	require.Equal(t, `{"taid":1152921504606846976,"estt":"2026-03-18T09:25:00+08:00","stnd":"208","fdiv":{"ddes":"HKG","ddir":"TO"},`+
		`"lbwt":0.5,"port":{"c":"2026-03-18T09:26:00+08:00"},"ctot":null}`, string(sis.AppendScalars(nil, fields, shanghai(t))))
	require.Equal(t, `{}`, string(sis.AppendScalars(nil, nil, nil)))
	require.Equal(t, `[{"port":{"o":null}}`, string(sis.AppendScalars([]byte{'['}, sis.Fields{"port.o": {}}, nil)))
}

func TestIgnoreRules(t *testing.T) {
	t.Parallel()
	rules := sis.IgnoreRules{"LDM-*", " rsta-STND "}
	for kind, want := range map[string]string{
		"LDM-NONE": "LDM-*", "ldm-x": "LDM-*", "RSTA-STND": "rsta-STND", "RSTA-GATE": "", "LDMX-NONE": "", "XLDM-NONE": "", "EROR-NONE": "",
	} {
		rule, ok := rules.Match(message.Kind(kind))
		require.Equal(t, want, rule, kind)
		require.Equal(t, want != "", ok)
	}
	require.NoError(t, rules.Validate())
	require.NoError(t, sis.IgnoreRules(nil).Validate())
	require.Error(t, sis.IgnoreRules{"LDM-*", "LDM", "-", "LDM-"}.Validate())
}
