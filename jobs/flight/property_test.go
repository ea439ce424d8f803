package flight_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/fault"
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
	deletes func(flid int64) bool // whose FDEL is drawn, and no schedule
	masters func(flid int64) []int64
}

// anything draws messages that do whatever there is, to whatever flight.
func anything(t *rapid.T, w *world) drawn {
	all := []int64{master1, master2, child1, child2, single}
	return drawn{t, w, func(int64) bool { return rapid.Bool().Draw(t, "flop") }, func(int64) []int64 { return all }}
}

// orderly draws only what ends the same in any order (design §6): no deletion of a master, and no schedule for a flight that
// is deleted, for that would create it again.
func orderly(t *rapid.T, w *world) drawn {
	masters := map[int64][]int64{child1: {master1, master2}, child2: {master1, master2}, master1: {master2}}
	return drawn{t, w, func(flid int64) bool { return flid == single || flid == child2 }, func(flid int64) []int64 { return masters[flid] }}
}

func (d drawn) chance(what string) bool { return rapid.Bool().Draw(d.T, what) }

func (d drawn) text() sis.Value {
	return rapid.SampledFrom([]sis.Value{{}, text("a"), text("b"), text("c")}).Draw(d.T, "text")
}

func (d drawn) entries(field string, value func() sis.Value, keys ...string) []sis.Entry {
	var all []sis.Entry
	for _, key := range keys {
		if d.chance("entry " + key) {
			all = append(all, entry(key, sis.Fields{field: value()}))
		}
	}
	return all
}

func (d drawn) stand() sis.Value {
	return rapid.SampledFrom([]sis.Value{text("203"), text("208"), text("131")}).Draw(d.T, "stand")
}

// list draws what a message says of a list. A schedule clears it first, so does a FLOP of a list that is replaced, and one of
// a list that is merged may. Push-back and tractor times only ever add, but for a schedule that clears them.
func (d drawn) list(name string, schedule bool) sis.List {
	switch name {
	case "psdt":
		return sis.List{Clear: true, Entries: d.entries("psst", d.stand, "1", "2")}
	case "psht", "tipt":
		if schedule && d.chance("clear") {
			return sis.List{Clear: true}
		}
		field := map[string]string{"psht": "pstm", "tipt": "trtm"}[name]
		return sis.List{Entries: d.entries(field, d.text, "203", "208", "131")}
	case "vipf":
		l := sis.List{Clear: schedule, Entries: d.entries("vfes", d.text, "VC1", "VC2")}
		for i := range l.Entries {
			if schedule && d.chance("services") {
				l.Entries[i].Sub = []sis.Fields{{"vscd": d.text()}}
			}
		}
		return l
	}
	l, _ := sis.ListByName(name)
	keys := []string{"AT", "WR"}
	if l.Numbered() {
		keys = []string{"1", "2", "10"}
	}
	return sis.List{Clear: schedule || l.Mode == sis.Replace || d.chance("clear"), Entries: d.entries("text", d.text, keys...)}
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
	} else if d.chance("schedule") {
		kind, r = "SCHD-ADFT", d.schedule(flid, nil)
		for _, name := range []string{"x", "y"} {
			if d.chance("ext") {
				r.Ext[name] = json.RawMessage(rapid.SampledFrom([]string{`""`, `"1"`, `"2"`}).Draw(d.T, "value"))
			}
		}
	}
	for _, name := range []string{"stnd", "reno", "fdiv.ddes", "fdiv.text", "port.o", "port.c"} {
		if d.chance(name) {
			r.Fields[name] = d.text()
		}
	}
	if d.chance("flno") {
		r.Fields["flno"] = rapid.SampledFrom([]sis.Value{text("ZH1"), text("ZH2")}).Draw(d.T, "number")
	}
	if masters := d.masters(flid); masters != nil && d.chance("link") {
		r.Fields["maid"] = sis.Value{}
		if master := rapid.SampledFrom(append([]int64{0}, masters...)).Draw(d.T, "maid"); master != 0 {
			r.Fields["maid"] = number(master)
		}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"psdt", "gtdt", "dely", "srvt", "erut", "vipf", "psht", "tipt"}), 0, 3, rapid.ID).Draw(d.T, "lists") {
		r.Lists[name] = d.list(name, kind != "FLOP-TEST")
	}
	return kind, r
}

func (d drawn) messages(most int) []sis.Message {
	all := make([]sis.Message, rapid.IntRange(1, most).Draw(d.T, "messages"))
	for i := range all {
		kind, r := d.record()
		records := []sis.Record{r}
		if kind == "FLOP-TEST" && !r.Delete && d.chance("two bodies") {
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
	for flid := int64(1); w.Flight(flid) != nil; flid++ {
		f := *w.Flight(flid).Clone()
		if !f.Live() {
			f = flight.Flight{FLID: flid, DeletedBy: f.DeletedBy}
		}
		f.Version, f.LastMessage, f.UpdatedAt, f.DeletedAt, f.Published = 0, flight.Flight{}.LastMessage, at(0), at(0), false
		all[flid] = f
	}
	return all
}

// Any order and repetition of messages for existing flights ends as in order (design §6).
func TestAnyOrderEndsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := seeded(t)
		endTheSame(rt, w, seeded(t), orderly(rt, w).messages(8))
	})
}

// So it does when all messages speak of one list of one flight: push-back and tractor times before their stand is there,
// entries that join a list before it is replaced or emptied, VIP services that only a schedule brings.
func TestAnyOrderOfOneList(t *testing.T) {
	t.Parallel()
	for _, l := range sis.ListSpecs() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := seeded(t)
				d := orderly(rt, w)
				messages := make([]sis.Message, rapid.IntRange(2, 5).Draw(rt, "messages"))
				for i := range messages {
					kind, r := "FLOP-TEST", sis.Record{FLID: master1, Fields: sis.Fields{}, Lists: map[string]sis.List{}}
					if d.chance("schedule") {
						kind, r = "SCHD-ADFT", d.schedule(master1, nil)
					}
					r.Lists[l.Name] = d.list(l.Name, kind == "SCHD-ADFT")
					if l.Mode == sis.Patch && d.chance("stands") {
						r.Lists["psdt"] = d.list("psdt", true)
					}
					messages[i] = d.message(kind, r)
				}
				endTheSame(rt, w, seeded(t), messages)
			})
		})
	}
}

// Every order of every order: VIP persons, whose services only schedules bring, so that chance hardly finds what goes wrong.
func TestEveryOrderOfVIPs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	vip := func(schedule bool, entries ...sis.Entry) sis.Message {
		kind, r := "FLOP-VIPF", sis.Record{FLID: master1}
		if schedule {
			kind, r = "SCHD-ADFT", w.schedule(master1, nil)
		}
		r.Lists = map[string]sis.List{"vipf": {Clear: schedule, Entries: entries}}
		return w.message(kind, r)
	}
	served := entry("VC1", sis.Fields{"vfes": number(2)})
	served.Sub = []sis.Fields{{"vscd": text("CAR")}}
	messages := []sis.Message{
		vip(true, served), vip(true), vip(false, entry("VC1", sis.Fields{"vfes": number(3)})), vip(false, entry("VC2", sis.Fields{"vfes": number(1)})),
	}
	for _, sent := range orders(len(messages)) {
		ordered := seeded(t)
		for id, i := range sent {
			ordered.must(t, int64(id+2), string(messages[i].Meta.Kind()), messages[i].Records...)
		}
		for _, came := range orders(len(messages)) {
			shuffled := seeded(t)
			for _, id := range came {
				m := messages[sent[id]]
				shuffled.must(t, int64(id+2), string(m.Meta.Kind()), m.Records...)
			}
			require.Empty(t, cmp.Diff(ordered.essence(), shuffled.essence()), "sent %v, came %v", sent, came)
		}
	}
}

// orders gives all orders of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, order := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(order), at, n-1))
		}
	}
	return all
}

// endTheSame decides the messages in order, and in another world in any order and some again.
func endTheSame(t *rapid.T, ordered, shuffled *world, messages []sis.Message) {
	order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0)).Perm(len(messages))
	order = append(order, rapid.SliceOfN(rapid.IntRange(0, len(messages)-1), 0, 4).Draw(t, "repeated")...)
	for i, m := range messages {
		ordered.must(t, int64(i+2), string(m.Meta.Kind()), m.Records...)
	}
	for _, i := range order {
		shuffled.must(t, int64(i+2), string(messages[i].Meta.Kind()), messages[i].Records...)
	}
	if diff := cmp.Diff(ordered.essence(), shuffled.essence()); diff != "" {
		t.Fatalf("order %v ends differently (-in order +shuffled):\n%s", order, diff)
	}
}

// After every message, whatever it was: versions step by one with every effective change and never else, MAFL is the live
// children, a record is on schd exactly while the flight is live and no child, and what an event says about a flight
// turns its JSON before into that after.
func TestEveryMessageKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := seeded(t)
		w.opt.DetachOnMasterDelete = rapid.Bool().Draw(rt, "detach")
		for i, m := range anything(rt, w).messages(12) {
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
	patch(shown, fields)
	var is map[string]any
	require.NoError(t, json.Unmarshal(flight.AppendJSON(nil, c.After, w.opt.Zone), &is))
	for _, own := range []string{"stateVersion", "lastMessageId", "updatedAt", "operationDay", "flid"} {
		delete(is, own)
		delete(shown, own)
	}
	require.Equal(t, is, shown)
}

// patch does to a flight's JSON what the fields of an event say: null takes away, also inside ext, which goes with its last
// name.
func patch(into, fields map[string]any) {
	for name, value := range fields {
		ext, isExt := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case name == "ext" && isExt:
			if patch(ext, value.(map[string]any)); len(ext) == 0 {
				delete(into, name)
			}
		default:
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

// Whatever schedules say in whatever order, a flight stays on the day it was created for; the message that would move it is
// refused whole (K25).
func TestOperationDayNeverMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := setup(t)
		w.opt.CutoffHour = rapid.IntRange(0, 23).Draw(rt, "cutoff")
		w.must(rt, 1, "SCHD-DNLD", w.schedule(master1, nil), w.schedule(single, nil))
		day := w.Flight(single).OperationDay
		for i := range rapid.IntRange(1, 6).Draw(rt, "messages") {
			when := at(0).Add(time.Duration(rapid.IntRange(-48, 48).Draw(rt, "hours")) * time.Hour)
			was := w.Flight(single)
			o, err := w.decide(int64(i+2), w.message("SCHD-DNLD",
				w.schedule(master1, sis.Fields{"stnd": text(fmt.Sprint(i))}), w.schedule(single, sis.Fields{"sodt": sis.MomentValue(when)})))
			require.Equal(rt, day, w.Flight(single).OperationDay)
			if flight.DayOf(when, w.opt.Zone, w.opt.CutoffHour) != day {
				require.Equal(rt, fault.Protocol, fault.Of(err))
				require.Empty(rt, o.Changes)
				require.Same(rt, was, w.Flight(single))
			}
		}
	})
}

// A child that comes to be known after its master was deleted ends as if it had come in time: deleted with it, or unlinked.
func TestLateChildOfADeletedMaster(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ordered, shuffled := seeded(t), seeded(t)
		detach := rapid.Bool().Draw(rt, "detach")
		ordered.opt.DetachOnMasterDelete, shuffled.opt.DetachOnMasterDelete = detach, detach
		d := orderly(rt, ordered)
		var messages []sis.Message
		for range rapid.IntRange(1, 4).Draw(rt, "schedules") {
			child := d.schedule(flights+1, sis.Fields{"flno": d.text(), "reno": d.text(), "maid": number(master2), "csop": d.text()})
			messages = append(messages, d.message("SCHD-ADFT", child))
		}
		messages = append(messages, d.message("FLOP-FDEL", fdel(master2)))
		endTheSame(rt, ordered, shuffled, messages)
		child := shuffled.Flight(flights + 1)
		require.Equal(rt, detach, child.Live())
		require.Positive(rt, child.Version)
	})
}

// What Needs asks for, closed over masters and children, is all that Decide looks at: a batch on one set loaded for it ends
// as one by one, each on a set of its own, with the same outcomes and so the same versions and events.
func TestBatchEqualsSingles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		whole := seeded(t)
		whole.opt.DetachOnMasterDelete = rapid.Bool().Draw(rt, "detach")
		d := anything(rt, whole)
		for i, m := range d.messages(4) {
			whole.must(rt, int64(i+2), string(m.Meta.Kind()), m.Records...)
		}
		messages := d.messages(4)
		batch := &world{Set: whole.closure(flight.Needs(messages...)), opt: whole.opt}
		for i, m := range messages {
			id, kind := int64(i+10), string(m.Meta.Kind())
			single := &world{Set: whole.closure(flight.Needs(m)), opt: whole.opt}
			want := whole.must(rt, id, kind, m.Records...)
			for name, w := range map[string]*world{"batch": batch, "single": single} {
				if diff := cmp.Diff(want, w.must(rt, id, kind, m.Records...)); diff != "" {
					rt.Fatalf("message %d (-whole +%s):\n%s", id, name, diff)
				}
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
