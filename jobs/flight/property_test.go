package flight_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

// The flights of the properties: few, so that messages meet.
const (
	master1 = 1 + iota
	master2
	child1
	child2
	single
	flights = single
)

// seeded is a world in which all flights exist, created by message 1.
func seeded(t tester) *world {
	w := setup(t)
	var records []sis.Record
	for flid := int64(1); flid <= flights; flid++ {
		records = append(records, w.schedule(flid, sis.Fields{"flno": text(fmt.Sprint("CA", flid))}))
	}
	records[child1-1].Fields["maid"] = number(master1)
	w.must(t, 1, "SCHD-DNLD", records...)
	return w
}

// schedule is a record of some flight of one day.
func (w *world) schedule(flid int64, more sis.Fields) sis.Record {
	fields := sis.Fields{"sodt": sis.MomentValue(at(0))}
	maps.Copy(fields, more)
	return sis.Record{FLID: flid, Fields: fields, Lists: map[string]sis.List{}, Ext: map[string]json.RawMessage{}}
}

// drawn draws what messages say.
type drawn struct {
	*rapid.T
	*world
	deletes func(flid int64) bool // whose FDEL and schedules are drawn
}

func (d drawn) text() sis.Value {
	return rapid.SampledFrom([]sis.Value{{}, text("a"), text("b"), text("c")}).Draw(d.T, "text")
}

func (d drawn) entries(keys ...string) []sis.Entry {
	var all []sis.Entry
	for _, key := range keys {
		if rapid.Bool().Draw(d.T, "entry "+key) {
			all = append(all, entry(key, sis.Fields{"text": d.text(), "psst": rapid.SampledFrom([]sis.Value{text("203"), text("208")}).Draw(d.T, "stand")}))
		}
	}
	return all
}

// list draws a list: name, and whether a FLOP may only add to it.
func (d drawn) list(r *sis.Record) {
	name := rapid.SampledFrom([]string{"psdt", "gtdt", "dely", "vipf", "psht", "tipt"}).Draw(d.T, "list")
	l := sis.List{Clear: true}
	switch name {
	case "psdt", "gtdt":
		l.Entries = d.entries("1", "2")
	case "dely":
		l.Clear = rapid.Bool().Draw(d.T, "clear")
		l.Entries = d.entries("AT", "WR")
	case "vipf":
		l.Clear = r.Fields["sodt"] != sis.Value{}
		l.Entries = d.entries("VC1", "VC2")
		for i := range l.Entries {
			if l.Clear && rapid.Bool().Draw(d.T, "services") {
				l.Entries[i].Sub = []sis.Fields{{"vscd": d.text()}}
			}
		}
	case "psht", "tipt":
		l.Clear = false
		for _, stand := range []string{"203", "208"} {
			if rapid.Bool().Draw(d.T, "at "+stand) {
				l.Entries = append(l.Entries, entry(stand, sis.Fields{"pstm": d.text(), "psid": d.text()}))
			}
		}
	}
	r.Lists[name] = l
}

func (d drawn) record() (kind string, r sis.Record) {
	flid := rapid.Int64Range(1, flights).Draw(d.T, "flid")
	r = sis.Record{FLID: flid, Fields: sis.Fields{}, Lists: map[string]sis.List{}}
	kind = "FLOP-TEST"
	if d.deletes(flid) {
		if rapid.IntRange(0, 3).Draw(d.T, "fdel") == 0 {
			r.Delete = true
			return kind, r
		}
	} else if rapid.Bool().Draw(d.T, "schedule") {
		kind, r = "SCHD-ADFT", d.schedule(flid, nil)
		for _, name := range []string{"x", "y"} {
			if rapid.Bool().Draw(d.T, "ext") {
				r.Ext[name] = json.RawMessage(rapid.SampledFrom([]string{`""`, `"1"`, `"2"`}).Draw(d.T, "value"))
			}
		}
	}
	for _, name := range []string{"stnd", "reno", "fdiv.ddes", "fdiv.text", "port.o", "port.c"} {
		if rapid.Bool().Draw(d.T, name) {
			r.Fields[name] = d.text()
		}
	}
	if rapid.Bool().Draw(d.T, "flno") {
		r.Fields["flno"] = rapid.SampledFrom([]sis.Value{text("ZH1"), text("ZH2")}).Draw(d.T, "number")
	}
	if flid == child1 || flid == child2 {
		r.Fields["maid"] = rapid.SampledFrom([]sis.Value{{}, number(master1), number(master2)}).Draw(d.T, "maid")
	}
	d.list(&r)
	return kind, r
}

func (d drawn) messages(most int) []sis.Message {
	all := make([]sis.Message, rapid.IntRange(1, most).Draw(d.T, "messages"))
	for i := range all {
		kind, r := d.record()
		records := []sis.Record{r}
		if kind == "FLOP-TEST" && !r.Delete && rapid.Bool().Draw(d.T, "two bodies") {
			if again, second := d.record(); again == kind && !second.Delete {
				records = append(records, second)
			}
		}
		all[i] = d.message(kind, records...)
	}
	return all
}

// essence is all of a flight that does not count or time what happened. Of a deleted one only who deleted it counts.
func (w *world) essence() map[int64]flight.Flight {
	all := map[int64]flight.Flight{}
	for flid := int64(1); flid <= flights; flid++ {
		f := *w.Flight(flid).Clone()
		if !f.Live() {
			f = flight.Flight{FLID: flid, DeletedBy: f.DeletedBy}
		}
		f.Version, f.LastMessage, f.UpdatedAt, f.DeletedAt, f.Published = 0, flight.Flight{}.LastMessage, at(0), at(0), false
		all[flid] = f
	}
	return all
}

// Any order and repetition of messages for existing flights ends as in order (design §6): no FDEL of a master, and no
// schedule for a flight that is deleted, for that would be a re-creation.
func TestAnyOrderEndsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ordered, shuffled := seeded(t), seeded(t)
		messages := drawn{rt, ordered, func(flid int64) bool { return flid == single || flid == child2 }}.messages(8)

		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "shuffle"), 0)).Perm(len(messages))
		order = append(order, rapid.SliceOfN(rapid.IntRange(0, len(messages)-1), 0, 4).Draw(rt, "repeated")...)
		for i, m := range messages {
			ordered.must(t, int64(i+2), string(m.Meta.Kind()), m.Records...)
		}
		for _, i := range order {
			shuffled.must(t, int64(i+2), string(messages[i].Meta.Kind()), messages[i].Records...)
		}
		if diff := cmp.Diff(ordered.essence(), shuffled.essence()); diff != "" {
			rt.Fatalf("order %v ends differently (-in order +shuffled):\n%s", order, diff)
		}
	})
}

// After every message, whatever it was: versions step by one with every effective change and never else, MAFL is the live
// children, a record is on schd exactly while the flight is live and no child, and what an event says about a flight
// turns its JSON before into that after.
func TestEveryMessageKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := seeded(t)
		w.opt.DetachOnMasterDelete = rapid.Bool().Draw(rt, "detach")
		d := drawn{rt, w, func(int64) bool { return rapid.Bool().Draw(rt, "flop") }}
		for i, m := range d.messages(12) {
			shown := map[int64]map[string]any{}
			for flid := int64(1); flid <= flights; flid++ {
				shown[flid] = w.show(rt, flid)
			}
			id := rapid.Int64Range(2, int64(i+2)).Draw(rt, "id")
			o := w.must(rt, id, string(m.Meta.Kind()), m.Records...)
			for _, c := range o.Changes {
				w.checkChange(rt, c, shown[c.After.FLID])
			}
			w.checkLinks(rt)
		}
	})
}

func (w *world) checkChange(t tester, c flight.Change, shown map[string]any) {
	step := int64(1)
	if c.Op == "" {
		step = 0
	}
	require.Equal(t, c.Before.Version+step, c.After.Version)
	if c.Op == flight.Delete {
		return
	}
	if c.Op == flight.Create {
		clear(shown)
	}
	var fields map[string]any
	require.NoError(t, json.Unmarshal(flight.AppendFields(nil, c, w.opt.Zone), &fields))
	require.Equal(t, c.Op == "", len(fields) == 0)
	for name, value := range fields {
		ext, isExt := shown[name].(map[string]any)
		switch {
		case value == nil:
			delete(shown, name)
		case name == "ext" && isExt:
			merge(ext, value.(map[string]any))
			if len(ext) == 0 {
				delete(shown, name)
			}
		default:
			shown[name] = value
		}
	}
	var is map[string]any
	require.NoError(t, json.Unmarshal(flight.AppendJSON(nil, c.After, w.opt.Zone), &is))
	for _, own := range []string{"stateVersion", "lastMessageId", "updatedAt", "operationDay", "flid"} {
		delete(is, own)
		delete(shown, own)
	}
	require.Equal(t, is, shown)
}

func merge(into, patch map[string]any) {
	for name, value := range patch {
		if value == nil {
			delete(into, name)
		} else {
			into[name] = value
		}
	}
}

func (w *world) checkLinks(t tester) {
	for flid := int64(1); flid <= flights; flid++ {
		f := w.Flight(flid)
		require.Equal(t, f.Live() && f.Master() == 0, f.Published)
		var mafl []string
		for other := int64(1); other <= flights; other++ {
			if c := w.Flight(other); f.Live() && c.Live() && c.Master() == flid {
				mafl = append(mafl, c.FLNO())
			}
		}
		slices.Sort(mafl)
		require.Equal(t, mafl, f.MAFL, "flight %d", flid)
	}
}

// What Needs asks for, closed over masters and children, is all that Decide looks at; and a batch on one Set ends as one
// by one, since nothing else passes from message to message.
func TestNeedsIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		whole := seeded(t)
		d := drawn{rt, whole, func(int64) bool { return rapid.Bool().Draw(rt, "flop") }}
		for i, m := range d.messages(4) {
			whole.must(rt, int64(i+2), string(m.Meta.Kind()), m.Records...)
		}
		batch := d.messages(4)
		part := &world{Set: whole.closure(flight.Needs(batch...)), opt: whole.opt}
		for i, m := range batch {
			id := int64(i + 10)
			want := whole.must(rt, id, string(m.Meta.Kind()), m.Records...)
			got := part.must(rt, id, string(m.Meta.Kind()), m.Records...)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("message %d (-whole +part):\n%s", id, diff)
			}
		}
	})
}

// closure is the flights that a store loads for these.
func (w *world) closure(flids []int64) *flight.Set {
	s := flight.NewSet()
	for len(flids) > 0 {
		f := w.Flight(flids[0])
		flids = flids[1:]
		if f == nil || s.Flight(f.FLID) != nil {
			continue
		}
		s.Put(f)
		flids = append(flids, f.Master())
		for _, c := range w.Children(f.FLID) {
			flids = append(flids, c.FLID)
		}
	}
	return s
}
