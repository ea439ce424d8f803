package outbox_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

const asyncapiFile = "../../docs/asyncapi.yaml"

// TestAsyncAPI holds docs/asyncapi.yaml against real records: their headers, keys and tombstones. Their values are held
// against the schemas it refers to in TestGoldenRecordsKeepTheSchemas.
func TestAsyncAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(asyncapiFile)
	require.NoError(t, err)
	var doc object
	require.NoError(t, yaml.Unmarshal(text, &doc))
	require.Equal(t, "3.0.0", doc["asyncapi"])
	references(t, doc, doc)
	headers := compiled(t, at(doc, "components", "schemas", "headers"))
	keys := slices.Sorted(maps.Keys(headers.Properties))
	key := compiled(t, at(doc, "components", "messages", "state", "bindings", "kafka", "key"))

	a := setup()
	events := a.decide(t, "SCHD-DNLD", fltr(15, 0))
	events = append(events, a.decide(t, "FLOP-FDEL", fdel(15))...)
	later := outbox.Event{Target: outbox.Schd, Message: message.Position{Generation: 2, ID: 1}, Type: outbox.Upsert, StateVersion: 1}
	types := map[outbox.Type]bool{}
	for _, e := range append(events, later) {
		types[e.Type] = true
		got := object{}
		for _, h := range e.Record().Headers {
			got[h.Key] = h.Value
		}
		require.NoError(t, headers.VisitJSON(got))
		require.Equal(t, keys, slices.Sorted(maps.Keys(got)), "described and sent")
		if e.FLID != 0 {
			require.NoError(t, key.VisitJSON(e.Record().Key))
		}
	}
	require.Len(t, types, len(outbox.AllTypes()))
	require.Equal(t, at(doc, "channels", "msg", "address"), strings.TrimPrefix(string(outbox.Msg), "KAFKA:"))
	require.Equal(t, at(doc, "channels", "schd", "address"), strings.TrimPrefix(string(outbox.Schd), "KAFKA:"))
}

// A replayed state is the flight of now, or the end of it, whatever died.
func TestStateOf(t *testing.T) {
	t.Parallel()
	a := setup()
	a.decide(t, "SCHD-DNLD", fltr(15, 0))
	dead := outbox.Event{ID: 7, Target: outbox.Schd, FLID: 15, StateVersion: 1, Kind: "FLOP-STND", Payload: json.RawMessage(`{"old":true}`)}
	a.decide(t, "FLOP-STND", stnd(15, "203"))
	now := outbox.StateOf(dead, a.Flight(15), a.opt.Zone)
	require.Equal(t, string(flight.AppendJSON(nil, a.Flight(15), a.opt.Zone)), string(now.Payload))
	require.Equal(t, []any{int64(0), "15", outbox.Upsert, int64(2), message.Position{ID: 2}}, []any{now.ID, now.PartitionKey, now.Type, now.StateVersion, now.Message})
	a.decide(t, "FLOP-FDEL", fdel(15))
	for _, f := range []*flight.Flight{a.Flight(15), nil} {
		gone := outbox.StateOf(dead, f, a.opt.Zone)
		require.Equal(t, outbox.Tombstone, gone.Type)
		require.Nil(t, gone.Payload)
	}
}

// at walks into a document.
func at(doc any, path ...string) any {
	for _, name := range path {
		doc = doc.(object)[name]
	}
	return doc
}

// references checks that everything referred to is there.
func references(t *testing.T, doc object, part any) {
	t.Helper()
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			references(t, doc, p)
		}
	case object:
		for name, p := range part {
			ref, is := p.(string)
			if name != "$ref" || !is {
				references(t, doc, p)
				continue
			}
			if inside, local := strings.CutPrefix(ref, "#/"); local {
				require.NotNil(t, at(doc, strings.Split(inside, "/")...), ref)
			} else {
				require.FileExists(t, filepath.Join(filepath.Dir(asyncapiFile), ref))
			}
		}
	}
}

// compiled gives a small schema of the document.
func compiled(t *testing.T, part any) *openapi3.Schema {
	t.Helper()
	text, err := json.Marshal(part)
	require.NoError(t, err)
	s := &openapi3.Schema{}
	require.NoError(t, s.UnmarshalJSON(text))
	return s
}
