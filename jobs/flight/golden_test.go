package flight_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

var update = flag.Bool("update", false, "write the expected files anew")

// The flights before each case are those of testdata/day.xml, applied as message 1, and before.xml, if the case has one,
// as message 2. The case's in.xml is message 3.
const (
	dayID = 1 + iota
	beforeID
	inID
)

// TestCases decides testdata/<KIND>/<case>/in.xml and compares the flights it changes with after.json and its events with
// events.json; or why it is refused with error.txt.
func TestCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*/*/in.xml")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.ToSlash(dir[len("testdata/"):]), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.apply(t, "testdata/day.xml", dayID)
			if _, err := os.Stat(filepath.Join(dir, "before.xml")); !errors.Is(err, fs.ErrNotExist) {
				w.apply(t, filepath.Join(dir, "before.xml"), beforeID)
			}
			m := w.decode(t, in)
			require.Equal(t, filepath.Base(filepath.Dir(dir)), string(m.Meta.Kind()))
			o, err := w.decide(inID, m)
			if err != nil {
				expect(t, filepath.Join(dir, "error.txt"), []byte(err.Error()+"\n"))
				return
			}
			expect(t, filepath.Join(dir, "after.json"), indented(t, w.changes(o)))
			expect(t, filepath.Join(dir, "events.json"), indented(t, w.events(t, m, inID, o)))
		})
	}
}

// TestDay decides the day's schedule, the sample of SCHD-DNLD, on an empty airport.
func TestDay(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.decode(t, "testdata/day.xml")
	o, err := w.decide(dayID, m)
	require.NoError(t, err)
	expect(t, "testdata/day.after.json", indented(t, w.changes(o)))
	expect(t, "testdata/day.events.json", indented(t, w.events(t, m, dayID, o)))
}

// Every kind that is about flights has its sample among the cases.
func TestEveryKindHasItsSample(t *testing.T) {
	t.Parallel()
	for k := range sis.Catalogue() {
		if (k.TYPE == sis.TypeSCHD || k.TYPE == sis.TypeFLOP) && k.Name != "SCHD-DNLD" {
			require.FileExists(t, filepath.Join("testdata", string(k.Name), "sample", "in.xml"))
		}
	}
}

func (w *world) decode(tb testing.TB, path string) sis.Message {
	tb.Helper()
	text, err := os.ReadFile(path)
	require.NoError(tb, err)
	m, err := sis.Decode(text, sis.Options{Zone: w.opt.Zone})
	require.NoError(tb, err)
	return m
}

func (w *world) apply(t testing.TB, path string, id int64) {
	t.Helper()
	_, err := w.decide(id, w.decode(t, path))
	require.NoError(t, err)
}

// changed is a change as after.json has it; of the provenance only what the message set.
type changed struct {
	Op         flight.Op       `json:"op"`
	Fields     []string        `json:"fields,omitempty"`
	Lists      []string        `json:"lists,omitempty"`
	Published  bool            `json:"published"`
	Provenance json.RawMessage `json:"provenance"`
	Flight     json.RawMessage `json:"flight"`
}

func (w *world) changes(o flight.Outcome) []changed {
	all := []changed{}
	for _, c := range o.Changes {
		f := c.After.Clone()
		if c.Before != nil {
			maps.DeleteFunc(f.Provenance, func(k string, _ message.Position) bool { return f.Provenance[k] == c.Before.Provenance[k] })
		}
		all = append(all, changed{
			Op: c.Op, Fields: c.Fields, Lists: c.Lists, Published: f.Published,
			Provenance: flight.AppendProvenance(nil, f), Flight: flight.AppendJSON(nil, f, w.opt.Zone),
		})
	}
	return all
}

// event is a Kafka record as events.json has it.
type event struct {
	Target  outbox.Target     `json:"target"`
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Value   json.RawMessage   `json:"value"`
}

func (w *world) events(t *testing.T, m sis.Message, id int64, o flight.Outcome) []event {
	t.Helper()
	all := []event{}
	built := outbox.Build(outbox.Cause{Pos: pos(id), Meta: m.Meta, ReceivedAt: time.Time{}}, o, outbox.Options{Zone: w.opt.Zone})
	for i, e := range built {
		e = e.WithID(int64(i + 1))
		headers := map[string]string{}
		for _, h := range e.Record().Headers {
			headers[h.Key] = h.Value
		}
		value := json.RawMessage(e.Record().Value)
		if e.Target == outbox.Schd && value != nil {
			require.Equal(t, string(flight.AppendJSON(nil, w.Flight(e.FLID), w.opt.Zone)), string(value))
			value = json.RawMessage(`"the flight as in after.json"`)
		}
		all = append(all, event{e.Target, e.PartitionKey, headers, value})
	}
	return all
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(v))
	return b.Bytes()
}

func expect(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
