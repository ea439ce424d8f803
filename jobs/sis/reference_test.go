package sis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

// list is a reference message of that kind.
func list(kind, inside string) string { return msg(meta(kind) + inside) }

// decodeList decodes without the site's ignore rules, which do not want REGN.
func decodeList(t *testing.T, text string) (*sis.Reference, error) {
	t.Helper()
	m, err := sis.Decode([]byte(text), sis.Options{})
	require.Nil(t, m.Records)
	return m.Reference, err
}

// TestReferenceRules: each situation of the dictionary's section 9, and what becomes of the message.
func TestReferenceRules(t *testing.T) {
	t.Parallel()
	const one = "<TLST><TCOD>T1</TCOD></TLST>"
	for _, c := range []struct {
		name, kind, inside string
		says               string // body, or "!" and the path of the broken rule
	}{
		{"record", "TLST-DNLD", "<RECS>1</RECS>" + one, `{"records":[{"tcod":"T1"}]}`},
		{"RECS absent", "TLST-DNLD", one, `{"records":[{"tcod":"T1"}]}`},
		{"RECS wrong", "TLST-DNLD", "<RECS>2</RECS>" + one, `{"records":[{"tcod":"T1"}],"remarks":["RECS is 2 and there are 1 TLST"]}`},
		{"RECS no number", "TLST-ADD", "<RECS>x</RECS>" + one, `{"records":[{"tcod":"T1"}],"remarks":["RECS is not a number"]}`},
		{"RECS behind the records", "TLST-UPD", one + "<RECS>1</RECS>", `{"records":[{"tcod":"T1"}]}`},
		{"nothing, and RECS 0", "TLST-RESP", "<RECS>0</RECS>", `{"records":[]}`},
		{"key missing", "TLST-DNLD", "<TLST><TNAM>x</TNAM></TLST>" + one, `{"records":[{"tcod":"T1"}],"remarks":["1 TLST without TCOD passed over"]}`},
		{"key empty", "TLST-ADD", "<TLST><TCOD> </TCOD></TLST>", `{"records":[],"remarks":["1 TLST without TCOD passed over"]}`},
		{"key missing in a deletion", "TLST-DEL", "<TLST/>" + one, `{"records":[{"tcod":"T1"}],"remarks":["1 TLST without TCOD passed over"]}`},
		{
			"flags", "TLST-DNLD", "<TLST><TCOD>T1</TCOD><TPAX>y</TPAX></TLST><TLST><TCOD>T2</TCOD><TPAX>1</TPAX></TLST><TLST><TCOD>T3</TCOD><TPAX/></TLST>",
			`{"records":[{"tcod":"T1","tpax":"Y"},{"tcod":"T2","tpax":"N"},{"tcod":"T3"}]}`,
		},
		{"case of a key", "TLST-DNLD", "<TLST><TCOD>t1</TCOD></TLST>" + one, `{"records":[{"tcod":"t1"},{"tcod":"T1"}]}`},
		{"keys that are numbers", "ORGN-DNLD", "<ORGN><OGID>007</OGID></ORGN>", `{"records":[{"ogid":7}]}`},
		{"repeated texts", "ABDG-UPD", "<ABDG><ABCD>B</ABCD><STND/><STND>2</STND><GATE> </GATE><STND>1</STND></ABDG>", `{"records":[{"abcd":"B","stnd":["2","1"]}]}`},
		{
			"repeated with attributes", "AIRL-UPD", `<AIRL><ITOP>CA</ITOP><TRML MVIN="" FLIN=""/><TRML MVIN="A" FLIN="">T1</TRML><TRML MVIN="D"/></AIRL>`,
			`{"records":[{"itop":"CA","trml":[{"mvin":"A","text":"T1"},{"mvin":"D"}]}]}`,
		},
		{"repeated with children", "AIRL-UPD", `<AIRL><ITOP>CA</ITOP><SUBC><CODE>C1</CODE></SUBC><SUBC><CODE/></SUBC></AIRL>`, `{"records":[{"itop":"CA","subc":[{"code":"C1"}]}]}`},
		{"deletion with the full record", "STTS-DEL", "<STTS><STTC>SCH</STTC><STTD>Scheduled</STTD><ABNS>N</ABNS><ABNS/></STTS>", `{"records":[{"sttc":"SCH"}]}`},
		{"deletion of one twice", "TLST-DEL", one + one, `{"records":[{"tcod":"T1"}]}`},
		{"unknown elements", "TLST-DNLD", "<NEW><TLST/></NEW><TLST NEW='1'><TCOD>T1</TCOD><NEW>x</NEW></TLST>", `{"records":[{"tcod":"T1"}]}`},
		{"records of another type", "TLST-DNLD", one + "<SLST><SCOD>1</SCOD></SLST>", `{"records":[{"tcod":"T1"}]}`},
		{"key twice", "TLST-DNLD", one + one, "!MSG/TLST[2]/TCOD"},
		{"key twice in an update", "TLST-UPD", one + "<TLST><TNAM/></TLST>" + one, "!MSG/TLST[3]/TCOD"},
		{"keys that are one number", "ORGN-DNLD", "<ORGN><OGID>7</OGID></ORGN><ORGN><OGID>07</OGID></ORGN>", "!MSG/ORGN[2]/OGID"},
		{"key no number", "ORGN-DEL", "<ORGN><OGID>seven</OGID></ORGN>", "!MSG/ORGN[1]/OGID"},
		{"value no number", "ABDG-DNLD", "<ABDG><ABCD>B</ABCD><AMNO>two</AMNO></ABDG>", "!MSG/ABDG[1]/AMNO"},
		{"value twice", "TLST-DNLD", "<TLST><TCOD>T1</TCOD><TNAM>a</TNAM><TNAM>a</TNAM></TLST>", "!MSG/TLST[1]/TNAM[2]"},
		{"element of the key twice", "TLST-DEL", "<TLST><TCOD>T1</TCOD><TCOD>T1</TCOD></TLST>", "!MSG/TLST[1]/TCOD[2]"},
		{"no key at all", "TLST-DNLD", "<TLST><TNAM>a</TNAM></TLST>", "!MSG/TLST"},
		{"nothing, and no RECS", "TLST-DNLD", "", "?MSG/TLST"},
		{"nothing, and RECS 3", "TLST-RESP", "<RECS>3</RECS>", "?MSG/TLST"},
		{"nothing to delete", "TLST-DEL", "", "?MSG/TLST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := sis.Decode([]byte(list(c.kind, c.inside)), sis.Options{})
			if path, broken := strings.CutPrefix(c.says, "!"); broken {
				requireFault(t, err, fault.Protocol, path)
				require.Nil(t, m.Reference)
				return
			}
			if path, broken := strings.CutPrefix(c.says, "?"); broken {
				requireFault(t, err, fault.Malformed, path)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.says, body(t, m))
		})
	}
}

// TestEveryList decodes a message of each of the 115 kinds with every element filled, and with none but the key.
func TestEveryList(t *testing.T) {
	t.Parallel()
	for k := range sis.Catalogue() {
		if k.Reference == nil {
			continue
		}
		t.Run(string(k.Name), func(t *testing.T) {
			t.Parallel()
			s := k.Reference
			key := "<" + s.Key.Elem + ">1</" + s.Key.Elem + ">"
			full := key
			for _, e := range s.Elements[1:] {
				full += sample(e)
			}
			r, err := decodeList(t, list(string(k.Name), wrap(s.Type, full)))
			require.NoError(t, err)
			require.Len(t, r.Records, 1)
			require.Equal(t, "1", r.Records[0].Key)
			if k.Mode == sis.Drop {
				require.Empty(t, cmp.Diff([]sis.ReferenceRecord{{Key: "1"}}, r.Records))
				return
			}
			require.Equal(t, len(s.Elements)-1, len(r.Records[0].Fields)+len(r.Records[0].Lists))

			empty := key
			for _, e := range s.Elements[1:] {
				empty += wrap(e.Name, " ")
			}
			r, err = decodeList(t, list(string(k.Name), wrap(s.Type, empty)))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff([]sis.ReferenceRecord{{Key: "1", Fields: sis.Fields{}}}, r.Records))
			require.Nil(t, r.Remarks)
		})
	}
}

func wrap(elem, inside string) string { return "<" + elem + ">" + inside + "</" + elem + ">" }

// sample is the element filled with what every form takes.
func sample(e sis.Element) string {
	for _, f := range e.Fields {
		if e.Card == "*" && f.Elem != "" {
			return wrap(e.Name, wrap(f.Elem, "1"))
		}
	}
	return wrap(e.Name, "1")
}

func TestReferenceByType(t *testing.T) {
	t.Parallel()
	for i := range sis.ReferenceSpecs() {
		want := &sis.ReferenceSpecs()[i]
		got, ok := sis.ReferenceByType(strings.ToLower(want.Type))
		require.True(t, ok)
		require.Same(t, want, got)
		require.Equal(t, want.Personal, want.Type == "VIPL")
		names := map[string]bool{}
		for _, e := range want.Elements {
			require.False(t, names[e.Name], "%s/%s", want.Type, e.Name)
			names[e.Name] = true
			require.NotEmpty(t, e.Meaning)
			require.Contains(t, []string{"1", "?", "*"}, e.Card)
		}
	}
	_, ok := sis.ReferenceByType("SCHD")
	require.False(t, ok)
}

// TestPersonsStayOutOfErrors: what is wrong with a VIP is told without saying who it is.
func TestPersonsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	person := "<VIPL><VPCD>V1</VPCD><VFNM>Secret</VFNM></VIPL>"
	_, err := decodeList(t, list("VIPL-DNLD", person+person))
	requireFault(t, err, fault.Protocol, "MSG/VIPL[2]/VPCD")
	_, err2 := decodeList(t, list("VIPL-DNLD", strings.Replace(person, "</VFNM>", "</VFNM><VFNM>Secret</VFNM>", 1)))
	requireFault(t, err2, fault.Protocol, "MSG/VIPL[1]/VFNM[2]")
	for _, err := range []error{err, err2} {
		require.NotContains(t, fault.Text(err), "Secret")
		require.NotContains(t, fault.Text(err), "V1")
	}
}
