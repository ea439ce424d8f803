package flight_test

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// world is flights under test: it decides messages one after the other, and keeps what they do.
type world struct {
	*flight.Set
	opt flight.Options
}

// stands is reference data: contact stands and their bridges.
type stands map[string][]string

func (s stands) Bridges(stand string) []string { return s[stand] }

func setup(t tester) *world {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	bridges := stands{"203": {"B1"}, "208": {"B7", "B8"}, "209": {"B8", "B9"}}
	return &world{Set: flight.NewSet(), opt: flight.Options{Zone: zone, Bridges: bridges}}
}

func pos(id int64) message.Position { return message.Position{ID: id} }

// at is the time at which message id is decided.
func at(id int64) time.Time {
	return time.Date(2026, 3, 18, 1, 0, 0, 0, time.UTC).Add(time.Duration(id) * time.Minute)
}

// message makes a message of records.
func (w *world) message(kind string, records ...sis.Record) sis.Message {
	return sis.Message{Meta: message.Meta{SNDR: "AODB", TYPE: kind[:4], STYP: kind[5:]}, Records: records}
}

func (w *world) decide(id int64, m sis.Message) (flight.Outcome, error) {
	o, err := flight.Decide(w, m, pos(id), at(id), w.opt)
	if err == nil {
		w.Apply(o)
	}
	return o, err
}

// must decides a message that is not refused.
func (w *world) must(t tester, id int64, kind string, records ...sis.Record) flight.Outcome {
	t.Helper()
	o, err := w.decide(id, w.message(kind, records...))
	require.NoError(t, err)
	return o
}

func text(s string) sis.Value { return sis.TextValue(s) }

func number(n int64) sis.Value { return sis.NumberValue(n) }

// moment reads "18 09:25", a time of March 2026 at the airport.
func (w *world) moment(t tester, s string) sis.Value {
	t.Helper()
	parsed, err := time.ParseInLocation("2006-01 02 15:04", "2026-03 "+s, w.opt.Zone)
	require.NoError(t, err)
	return sis.MomentValue(parsed)
}

// fltr is a schedule's record with what every record has, and more.
func (w *world) fltr(t tester, flid int64, flno, sodt string, more sis.Fields) sis.Record {
	t.Helper()
	r := sis.Record{FLID: flid, Fields: sis.Fields{
		"alcd": text(flno[:2]), "flno": text(flno), "mvin": text("D"), "sodt": w.moment(t, sodt), "flty": text("J"),
		"flin": text("D"), "acft": text("320"),
	}, Lists: map[string]sis.List{}}
	for name, v := range more {
		r.Fields[name] = v
	}
	return r
}

func flop(flid int64, fields sis.Fields) sis.Record { return sis.Record{FLID: flid, Fields: fields} }

func fdel(flid int64) sis.Record { return sis.Record{FLID: flid, Delete: true} }

func entry(key string, fields sis.Fields) sis.Entry { return sis.Entry{Key: key, Fields: fields} }

// lists is a record with one list.
func lists(flid int64, name string, clears bool, entries ...sis.Entry) sis.Record {
	return sis.Record{FLID: flid, Lists: map[string]sis.List{name: {Clear: clears, Entries: entries}}}
}

// psdt is a list of stands.
func psdt(stands ...string) []sis.Entry {
	var entries []sis.Entry
	for i, s := range stands {
		entries = append(entries, entry(strconv.Itoa(i+1), sis.Fields{"psst": text(s)}))
	}
	return entries
}

// show is the flight's JSON, read back.
func (w *world) show(t tester, flid int64) map[string]any {
	t.Helper()
	var shown map[string]any
	require.NoError(t, json.Unmarshal(flight.AppendJSON(nil, w.Flight(flid), w.opt.Zone), &shown))
	return shown
}

// fields is what a change says in events, read back.
func (w *world) fields(t tester, c flight.Change) map[string]any {
	t.Helper()
	var shown map[string]any
	require.NoError(t, json.Unmarshal(flight.AppendFields(nil, c, w.opt.Zone), &shown))
	return shown
}
