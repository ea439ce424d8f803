package refdata_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/refdata"
)

func endpoint(t *testing.T, rtype, text string) refdata.Endpoint {
	t.Helper()
	e, err := refdata.ParseEndpoint(rtype, text)
	require.NoError(t, err)
	require.Equal(t, text, e.String())
	return e
}

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	require.Empty(t, cmp.Diff(refdata.Endpoint{
		RType: "ORMS_STAND_AIRBRIDGE", Path: "/orms/stand-airbridges", Key: [][]string{{"stand", "code"}, {"bridge"}}, List: []string{"data", "items"},
	}, endpoint(t, "ORMS_STAND_AIRBRIDGE", "/orms/stand-airbridges stand.code+bridge data.items")))
	for rtype, text := range map[string]string{"AIRL": "airl itop", "SLST": "/slst", "ABDG": "/a b c d", "": "/a b", "x": "/a b"} {
		_, err := refdata.ParseEndpoint(rtype, text)
		require.Error(t, err, rtype)
	}
}

// An answer is a whole list, or it is refused.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ endpoint, body, keys, why string }{
		"a list":             {"/a code", `[{"code":"B"},{"code":"A","x":[1]}]`, "B A", ""},
		"inside":             {"/a id.code data.items", `{"ok":true,"data":{"items":[{"id":{"code":" B "}}]}}`, "B", ""},
		"numbers":            {"/a id", `[{"id":7},{"id":12345678901234567890}]`, "7 12345678901234567890", ""},
		"of parts":           {"/a stand+bridge", `[{"stand":"208","bridge":"B1"},{"stand":"208","bridge":"B2"}]`, "208|B1 208|B2", ""},
		"nothing":            {"/a code", ``, "", "EOF"},
		"half":               {"/a code", `[{"code":"A"},{"co`, "", "unexpected EOF"},
		"two":                {"/a code", `[{"code":"A"}] []`, "", "something follows"},
		"an error page":      {"/a code", `<html>`, "", "invalid character"},
		"an error object":    {"/a code", `{"error":"x"}`, "", "cannot unmarshal object"},
		"another shape":      {"/a code data", `{"items":[]}`, "", "there is no data"},
		"an empty list":      {"/a code", `[]`, "", "the list is empty"},
		"null":               {"/a code", `null`, "", "the list is empty"},
		"the same key twice": {"/a code", `[{"code":"A"},{"code":"B"},{"code":" A"}]`, "", "records 1 and 3 have the same key"},
		"no key":             {"/a code", `[{"code":"A"},{}]`, "", "record 2: there is no code"},
		"an empty key":       {"/a code", `[{"code":" "}]`, "", "it is no key"},
		"a key that is none": {"/a code", `[{"code":["A"]}]`, "", "it is no key"},
		"a record is none":   {"/a code", `[{"code":"A"},7]`, "", "record 2"},
		"NUL":                {"/a code", `[{"code":"A","x":"\u0000"}]`, "", "NUL"},
		"a key with a bar":   {"/a code", `[{"code":"A|B"}]`, "", "it is no key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := endpoint(t, "AIRL", c.endpoint).Read([]byte(c.body))
			if c.why != "" {
				require.Equal(t, fault.Protocol, fault.Of(err))
				require.ErrorContains(t, err, c.why)
				return
			}
			require.NoError(t, err)
			keys := ""
			for _, r := range b.Records {
				keys += " " + r.Key
			}
			require.Equal(t, " "+c.keys, keys)
			require.True(t, b.Whole())
			require.Equal(t, refdata.AdminAPI, b.Source)
		})
	}
}
