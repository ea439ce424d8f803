package refdata_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

var _ flight.Bridges = (*refdata.Stands)(nil)

func batch(t *testing.T, path string) refdata.Batch {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := sis.Decode(text, sis.Options{})
	require.NoError(t, err)
	return refdata.Of(m, message.Position{ID: 7})
}

// What the dictionary's samples say becomes records: key, and the whole record as JSON.
func TestOf(t *testing.T) {
	t.Parallel()
	b := batch(t, "testdata/ABDG-RESP.xml")
	require.Equal(t, "ABDG COMPLETE AODB 7 true", fmt.Sprint(b.RType, " ", b.Mode, " ", b.Source, " ", b.From, " ", b.Whole()))
	require.Equal(t, "B112A", b.Records[0].Key)
	require.JSONEq(t, `{"abcd":"B112A","desc":"Bridge 112A","cdsc":"112A\u767b\u673a\u6865","ahgt":5.4,"atml":"T1","athe":"Y","stnd":["112"],"gate":["G52"],"amno":1}`,
		string(b.Records[0].Doc))

	gone := batch(t, "testdata/COUL-DEL.xml")
	require.Equal(t, sis.Drop, gone.Mode)
	require.False(t, gone.Whole())
	for _, r := range gone.Records {
		require.Nil(t, r.Doc)
	}
}

// The stands of the dictionary's samples with their bridges: contact stands with one and with several, bridges that serve
// two stands, remote stands.
func TestStands(t *testing.T) {
	t.Parallel()
	stands, bridges := batch(t, "testdata/SLST-RESP.xml"), batch(t, "testdata/ABDG-RESP.xml")
	s, err := refdata.NewStands(map[string][]refdata.Record{refdata.StandList: stands.Records, refdata.BridgeList: bridges.Records})
	require.NoError(t, err)
	got := map[string][]string{"999": s.Bridges("999")}
	for _, r := range stands.Records {
		got[r.Key] = s.Bridges(r.Key)
	}
	require.Empty(t, cmp.Diff(map[string][]string{
		"112": {"B112A", "B112B"}, "114": {"B114"}, "131": {"B131"}, "203": {"B203A", "B203B"}, "205": {"B205"}, "206": {"B205"},
		"208": {"B208"}, "304": nil, "305": nil, "999": nil,
	}, got))
}

func list(records ...string) (out []refdata.Record) {
	for i := 0; i < len(records); i += 2 {
		out = append(out, refdata.Record{Key: records[i], Doc: json.RawMessage(records[i+1])})
	}
	return out
}

func TestStandsRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stands, bridges, pairs []refdata.Record
		want                   []string // of stand 1
	}{
		"nothing is known":       {nil, nil, nil, nil},
		"unknown stand":          {nil, list("B", `{"stnd":["1"]}`), nil, []string{"B"}},
		"contact":                {list("1", `{"remt":"N"}`), list("B", `{"stnd":["2","1"]}`), nil, []string{"B"}},
		"kind is not said":       {list("1", `{}`), list("B", `{"stnd":["1"]}`), nil, []string{"B"}},
		"remote":                 {list("1", `{"remt":"Y"}`), list("B", `{"stnd":["1"]}`), nil, nil},
		"a third kind":           {list("1", `{"remt":"B"}`), list("B", `{"stnd":["1"]}`), nil, nil},
		"in the order of keys":   {nil, list("B2", `{"stnd":["1"]}`, "B10", `{"stnd":["1"]}`, "A", `{"stnd":["1"]}`), nil, []string{"A", "B10", "B2"}},
		"no stand":               {nil, list("B", `{}`), nil, nil},
		"the neighbour's counts": {nil, list("B", `{"stnd":["1"]}`), list("1|C2", `{}`, "1|C1", `{}`, "2|D", `{}`), []string{"C1", "C2"}},
		"and knows none":         {nil, list("B", `{"stnd":["1"]}`), list("2|D", `{}`), nil},
		"but remote is remote":   {list("1", `{"remt":"Y"}`), nil, list("1|C", `{}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := refdata.NewStands(map[string][]refdata.Record{
				refdata.StandList: c.stands, refdata.BridgeList: c.bridges, refdata.StandBridgeList: c.pairs,
			})
			require.NoError(t, err)
			require.Equal(t, c.want, s.Bridges("1"))
		})
	}
	_, err := refdata.NewStands(map[string][]refdata.Record{refdata.BridgeList: list("B", `[]`)})
	require.Error(t, err)
}

// A batch is stale when something newer has stated the whole list or dropped from it; what comes from no message never is.
func TestStale(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := message.Position{Generation: rapid.Int32Range(0, 1).Draw(t, "g"), ID: rapid.Int64Range(0, 5).Draw(t, "id")}
		from := message.Position{Generation: rapid.Int32Range(0, 1).Draw(t, "G"), ID: rapid.Int64Range(1, 5).Draw(t, "ID")}
		require.Equal(t, floor.After(from), refdata.Batch{From: from}.Stale(floor))
		require.False(t, refdata.Batch{}.Stale(floor))
	})
}
