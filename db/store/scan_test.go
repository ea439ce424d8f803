package store

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestScanner_seesWhatEncodingJSONSees: the members of an object and the elements of an array, as text.
func TestScanner_seesWhatEncodingJSONSees(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[ ] } `, `{"a":"}\"\\","b":{"c":["]",{"d":null}]},"e":true , "f":-1.5e3}`, `{"":""}`,
	} {
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		got := map[string]json.RawMessage{}
		s := &scanner{text: []byte(text)}
		require.NoError(t, s.object(func(name []byte) error {
			got[string(name)] = s.value()
			return nil
		}), text)
		require.True(t, maps.EqualFunc(want, got, func(a, b json.RawMessage) bool { return string(a) == string(b) }), "%s: %s", text, got)
	}
	var got []string
	s := &scanner{text: []byte(`[1, "2,]" ,[3],null]`)}
	require.NoError(t, s.array(func() error {
		got = append(got, string(s.value()))
		return nil
	}))
	require.Equal(t, []string{`1`, `"2,]"`, `[3]`, `null`}, got)
}

// TestScanner_endsOnAnyText: nothing makes it panic or go on for ever.
func TestScanner_endsOnAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SampledFrom([]string{`{`, `}`, `[`, `]`, `"`, `\`, `,`, `:`, ` `, `1`, `null`, `"a":`})
		text := slices.Concat([]string{"{"}, rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"))
		var joined []byte
		for _, p := range text {
			joined = append(joined, p...)
		}
		s := &scanner{text: joined}
		_ = s.object(func([]byte) error { s.value(); return nil })
	})
}
