package flight_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

func TestScheduleCreatesAndMerges(t *testing.T) {
	t.Parallel()
	w := setup(t)

	o := w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"stnd": text("203"), "reno": text("B7X02")}))
	require.Equal(t, flight.Create, o.Changes[0].Op)
	require.Equal(t, []int{1, 0, 0}, []int{o.Created, o.Updated, o.Unchanged})

	o = w.must(t, 2, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"stnd": {}}), w.fltr(t, 8, "CA4911", "18 12:00", nil))
	require.Equal(t, []string{"stnd"}, o.Changes[0].Fields)
	require.Equal(t, map[string]any{"stnd": nil}, w.fields(t, o.Changes[0]))
	require.Equal(t, []int{1, 1, 0}, []int{o.Created, o.Updated, o.Unchanged})

	f := w.Flight(7)
	require.EqualValues(t, 2, f.Version)
	require.Equal(t, pos(2), f.LastMessage)
	require.Equal(t, at(2), f.UpdatedAt)
	require.Equal(t, text("B7X02"), f.Scalars["reno"], "absent keeps")
	require.NotContains(t, f.Scalars, "stnd", "empty clears")
	require.Equal(t, pos(1), f.Provenance["reno"])
	require.Equal(t, pos(2), f.Provenance["stnd"])

	o = w.must(t, 3, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil))
	require.Equal(t, flight.Op(""), o.Changes[0].Op, "an equal value moves the provenance, silently")
	require.Equal(t, []int{0, 0, 1}, []int{o.Created, o.Updated, o.Unchanged})
	require.EqualValues(t, 2, w.Flight(7).Version)
	require.Equal(t, pos(2), w.Flight(7).LastMessage)
	require.Equal(t, pos(3), w.Flight(7).Provenance["flno"])

	require.Empty(t, w.must(t, 3, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil)).Changes, "the same message again")
}

// K25: the day is the flight's, not that of the values it gets.
func TestK25_OperationDay(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.opt.CutoffHour = 4

	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 23:55", nil), w.fltr(t, 8, "CA4908", "19 03:59", nil))
	require.Equal(t, flight.Day("2026-03-18"), w.Flight(7).OperationDay)
	require.Equal(t, flight.Day("2026-03-18"), w.Flight(8).OperationDay)

	w.must(t, 2, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "19 00:10", nil))
	w.must(t, 3, "FLOP-ESTT", flop(8, sis.Fields{"estt": w.moment(t, "19 05:00")}))
	require.Equal(t, flight.Day("2026-03-18"), w.Flight(7).OperationDay)
	require.Equal(t, flight.Day("2026-03-18"), w.Flight(8).OperationDay)

	_, err := w.decide(4, w.message("SCHD-DNLD", w.fltr(t, 9, "CA4909", "18 12:00", nil), w.fltr(t, 7, "CA4907", "19 04:00", nil)))
	require.Equal(t, fault.Protocol, fault.Of(err))
	require.ErrorContains(t, err, "MSG/SCHD/FLTR[2]/SODT")
	require.Nil(t, w.Flight(9), "nothing of a refused message is applied")
	require.EqualValues(t, 2, w.Flight(7).Version)

	w.must(t, 5, "SCHD-DNLD", w.fltr(t, 17, "CA4907", "19 23:55", nil))
	w.must(t, 6, "FLOP-CNCL", flop(7, sis.Fields{"cncl": w.moment(t, "18 22:00")}))
	require.NotContains(t, w.show(t, 17), "cncl", "the same number, another day")
	require.Equal(t, flight.Day("2026-03-19"), w.Flight(17).OperationDay)
}

// K24: absent keeps, empty clears, and nothing becomes 0 or the year 1.
func TestK24_ThreeStates(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"vipp": number(3), "tobt": w.moment(t, "18 11:35")}))

	o := w.must(t, 2, "FLOP-VIPP", flop(7, sis.Fields{"vipp": {}, "vipr": {}}))
	require.Equal(t, map[string]any{"vipp": nil}, w.fields(t, o.Changes[0]), "what was never set is not cleared")
	shown := w.show(t, 7)
	require.NotContains(t, shown, "vipp")
	require.Equal(t, "2026-03-18T11:35:00+08:00", shown["tobt"])

	o = w.must(t, 3, "FLOP-TOBT", flop(7, sis.Fields{"tobt": {}}))
	require.Equal(t, map[string]any{"tobt": nil}, w.fields(t, o.Changes[0]))
}

func TestGroups(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil))

	w.must(t, 3, "FLOP-FDIV", flop(7, sis.Fields{"fdiv.ddes": text("HKG"), "fdiv.ddir": text("TO"), "fdiv.text": text("fog")}))
	require.Equal(t, map[string]any{"ddes": "HKG", "ddir": "TO", "text": "fog"}, w.show(t, 7)["fdiv"])
	require.Empty(t, w.must(t, 2, "FLOP-FDIV", flop(7, sis.Fields{"fdiv.ddes": text("SZX"), "fdiv.ddir": text("TO")})).Changes, "late")

	o := w.must(t, 4, "FLOP-FDIV", flop(7, sis.Fields{"fdiv.ddes": text("HKG"), "fdiv.ddir": text("FROM")}))
	require.Equal(t, map[string]any{"fdiv": map[string]any{"ddes": "HKG", "ddir": "FROM"}}, w.fields(t, o.Changes[0]), "a group is replaced whole")
	o = w.must(t, 5, "FLOP-FDIV", flop(7, sis.Fields{"fdiv.ddes": {}, "fdiv.ddir": {}, "fdiv.text": {}}))
	require.Equal(t, map[string]any{"fdiv": nil}, w.fields(t, o.Changes[0]))

	w.must(t, 7, "FLOP-PORT", flop(7, sis.Fields{"port.o": w.moment(t, "18 10:55")}))
	o = w.must(t, 6, "FLOP-PORT", flop(7, sis.Fields{"port.c": w.moment(t, "18 11:30")}))
	require.Equal(t, map[string]any{"port": map[string]any{"o": "2026-03-18T10:55:00+08:00", "c": "2026-03-18T11:30:00+08:00"}},
		w.fields(t, o.Changes[0]), "the two doors are set each by itself")
	require.Equal(t, pos(7), w.Flight(7).Provenance["port.o"])
}

func TestLists(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil))

	gates := func(gates ...string) []sis.Entry {
		var all []sis.Entry
		for i, g := range gates {
			all = append(all, entry([]string{"10", "2", "1"}[i], sis.Fields{"gate": text(g), "pgot": {}}))
		}
		return all
	}
	o := w.must(t, 3, "FLOP-GTDT", lists(7, "gtdt", true, gates("G3", "G2", "G1")...))
	require.Equal(t, map[string]any{"gtdt": []any{
		map[string]any{"gtno": 1.0, "gate": "G1"}, map[string]any{"gtno": 2.0, "gate": "G2"}, map[string]any{"gtno": 10.0, "gate": "G3"},
	}}, w.fields(t, o.Changes[0]), "by number, empty is no value")
	require.Equal(t, []string{"gtdt"}, o.Changes[0].Lists)
	require.Empty(t, w.must(t, 2, "FLOP-GTDT", lists(7, "gtdt", true, gates("X1")...)).Changes, "late")

	w.must(t, 4, "FLOP-GTDT", lists(7, "gtdt", true, gates("G9")...))
	require.Len(t, w.show(t, 7)["gtdt"], 1)
	o = w.must(t, 5, "FLOP-GTDT", lists(7, "gtdt", true))
	require.Equal(t, map[string]any{"gtdt": nil}, w.fields(t, o.Changes[0]))
}

func TestMergedListHasProvenancePerEntry(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil))
	delay := func(code, why string) sis.Entry {
		return entry(code, sis.Fields{"dura": number(85), "text": text(why)})
	}

	w.must(t, 2, "FLOP-DELY", lists(7, "dely", false, delay("WR", "weather"), delay("AT", "flow")))
	w.must(t, 6, "FLOP-DELY", lists(7, "dely", false, delay("AT", "slot")))
	w.must(t, 5, "FLOP-DELY", lists(7, "dely", false, delay("AT", "late"), delay("CR", "crew")))
	require.Equal(t, []any{
		map[string]any{"code": "AT", "duraMinutes": 85.0, "text": "slot"},
		map[string]any{"code": "CR", "duraMinutes": 85.0, "text": "crew"},
		map[string]any{"code": "WR", "duraMinutes": 85.0, "text": "weather"},
	}, w.show(t, 7)["dely"])

	w.must(t, 4, "FLOP-DELY", lists(7, "dely", true))
	require.Len(t, w.show(t, 7)["dely"], 2, "a late clearing takes what is older")
	require.Empty(t, w.must(t, 3, "FLOP-DELY", lists(7, "dely", false, delay("XX", "older than the clearing"))).Changes)
	require.Equal(t, pos(4), w.Flight(7).Provenance["dely"])
	require.Equal(t, pos(5), w.Flight(7).Provenance["dely.CR"])
	require.Equal(t, pos(6), w.Flight(7).Provenance["dely.AT"])

	w.must(t, 7, "SCHD-ADFT", func() sis.Record {
		r := w.fltr(t, 7, "CA4907", "18 11:40", nil)
		r.Lists["dely"] = sis.List{Clear: true, Entries: []sis.Entry{delay("WR", "again")}}
		return r
	}())
	require.Len(t, w.show(t, 7)["dely"], 1)
	require.NotContains(t, w.Flight(7).Provenance, "dely.AT")
	require.NotContains(t, w.Flight(7).Provenance, "dely.WR", "the list's own says it")
}

func TestVIPServicesComeFromTheSchedule(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.fltr(t, 7, "CA4907", "18 11:40", nil)
	schedule := func(id int64, entries ...sis.Entry) {
		r.Lists["vipf"] = sis.List{Clear: true, Entries: entries}
		w.must(t, id, "SCHD-DNLD", r)
	}
	vip := func(party int64, services ...sis.Fields) sis.Entry {
		return sis.Entry{Key: "VC1", Fields: sis.Fields{"vfes": number(party)}, Sub: services}
	}
	shown := func(services ...any) []any {
		entry := map[string]any{"vpcd": "VC1", "vfes": 6.0}
		if services != nil {
			entry["vipt"] = services
		}
		return []any{entry}
	}

	schedule(1, vip(4, sis.Fields{"vscd": text("CAR"), "vtqy": number(2)}))
	w.must(t, 4, "FLOP-VIPF", lists(7, "vipf", false, vip(6)))
	require.Equal(t, shown(map[string]any{"vscd": "CAR", "vtqy": 2.0}), w.show(t, 7)["vipf"], "a FLOP brings no services and takes none")
	schedule(2, vip(5, sis.Fields{"vscd": text("TEA")}))
	require.Equal(t, shown(map[string]any{"vscd": "TEA"}), w.show(t, 7)["vipf"], "a late schedule still brings its own")
	schedule(3)
	require.Equal(t, shown(), w.show(t, 7)["vipf"], "or none")
}

func TestStandsCarryPushBackAndTractor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil))

	o := w.must(t, 2, "FLOP-PSHT", lists(7, "psht", false, entry("208", sis.Fields{"pstm": w.moment(t, "18 11:38"), "psid": text("OUT")})))
	require.Equal(t, flight.Op(""), o.Changes[0].Op, "kept, but nobody sees it")
	require.Equal(t, []string{"psht"}, o.Changes[0].Lists, "and must be stored")
	require.EqualValues(t, 1, w.Flight(7).Version)

	o = w.must(t, 3, "FLOP-PSDT", lists(7, "psdt", true, psdt("208", "203")...))
	push := map[string]any{"pstm": "2026-03-18T11:38:00+08:00", "psid": "OUT"}
	require.Equal(t, map[string]any{
		"psdt": []any{map[string]any{"psno": 1.0, "psst": "208", "psht": push}, map[string]any{"psno": 2.0, "psst": "203"}},
		"abdg": "B7,B8,B1",
	}, w.fields(t, o.Changes[0]))

	o = w.must(t, 4, "FLOP-TIPT", lists(7, "tipt", false, entry("208", sis.Fields{"trtm": w.moment(t, "18 11:28")})))
	require.Equal(t, map[string]any{"psdt": []any{
		map[string]any{"psno": 1.0, "psst": "208", "psht": push, "tipt": map[string]any{"trtm": "2026-03-18T11:28:00+08:00"}},
		map[string]any{"psno": 2.0, "psst": "203"},
	}}, w.fields(t, o.Changes[0]))

	w.must(t, 5, "FLOP-PSHT", lists(7, "psht", false, entry("208", sis.Fields{"pstm": {}, "psid": {}})))
	require.NotContains(t, w.show(t, 7)["psdt"].([]any)[0], "psht")
	require.Equal(t, pos(5), w.Flight(7).Provenance["psht.208"])

	o = w.must(t, 6, "FLOP-PSDT", lists(7, "psdt", true))
	require.Equal(t, map[string]any{"psdt": nil, "abdg": nil}, w.fields(t, o.Changes[0]))
	w.must(t, 7, "FLOP-PSDT", lists(7, "psdt", true, psdt("209", "208", "301")...))
	require.Equal(t, "B8,B9,B7", w.Flight(7).ABDG, "each bridge once")
	require.Contains(t, w.show(t, 7)["psdt"].([]any)[1], "tipt", "stays with the stand")
}

func TestExtIsMergedByName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := w.fltr(t, 7, "CA4907", "18 11:40", nil)
	r.Ext = map[string]json.RawMessage{"aaaa": json.RawMessage(`"x"`), "bbbb": json.RawMessage(`{"c":"1","text":"<&"}`)}
	o := w.must(t, 1, "SCHD-DNLD", r)
	require.Contains(t, o.Changes[0].Fields, "ext")
	require.Equal(t, map[string]any{"aaaa": "x", "bbbb": map[string]any{"c": "1", "text": "<&"}}, w.show(t, 7)["ext"])

	r.Ext = map[string]json.RawMessage{"aaaa": json.RawMessage(`""`), "cccc": json.RawMessage(`["1","2"]`)}
	o = w.must(t, 2, "SCHD-ADFT", r)
	require.Equal(t, map[string]any{"ext": map[string]any{"aaaa": nil, "cccc": []any{"1", "2"}}}, w.fields(t, o.Changes[0]))
	require.Len(t, w.Flight(7).Ext, 2)
	require.Equal(t, pos(1), w.Flight(7).Provenance["ext.bbbb"])
}

func TestUnknownFlight(t *testing.T) {
	t.Parallel()
	w := setup(t)
	o := w.must(t, 1, "FLOP-STND", flop(7, sis.Fields{"stnd": text("203")}))
	require.Empty(t, o.Changes)
	require.Equal(t, 1, o.Unchanged)
	require.Empty(t, w.must(t, 2, "FLOP-FDEL", fdel(7)).Changes)

	w.must(t, 5, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil))
	require.Empty(t, w.must(t, 4, "FLOP-STND", flop(7, sis.Fields{"stnd": text("203")})).Changes, "in order it would have found nothing")
	require.Empty(t, w.must(t, 3, "FLOP-FDEL", fdel(7)).Changes)

	w.must(t, 2, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"reno": text("B7X02")}))
	require.Equal(t, pos(2), w.Flight(7).CreatedBy, "a late schedule is the one that would have created it")
	require.Equal(t, text("B7X02"), w.Flight(7).Scalars["reno"])
	w.must(t, 4, "FLOP-STND", flop(7, sis.Fields{"stnd": text("203")}))
	require.Equal(t, text("203"), w.Flight(7).Scalars["stnd"])
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"stnd": text("203")}))
	w.must(t, 1, "FLOP-PSDT", lists(7, "psdt", true, psdt("203")...))

	o := w.must(t, 5, "FLOP-FDEL", fdel(7))
	require.Equal(t, flight.Delete, o.Changes[0].Op)
	require.Empty(t, o.Changes[0].Fields)
	f := w.Flight(7)
	require.False(t, f.Live())
	require.EqualValues(t, 3, f.Version)
	require.Equal(t, at(5), f.DeletedAt)
	require.Equal(t, pos(5), f.DeletedBy)

	for id, m := range map[int64]sis.Message{
		2: w.message("FLOP-STND", flop(7, sis.Fields{"stnd": text("208")})),
		6: w.message("FLOP-STND", flop(7, sis.Fields{"stnd": text("208")})),
		4: w.message("FLOP-FDEL", fdel(7)),
		5: w.message("FLOP-FDEL", fdel(7)),
		3: w.message("SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil)),
	} {
		o, err := w.decide(id, m)
		require.NoError(t, err)
		require.Empty(t, o.Changes, "message %d", id)
	}

	o = w.must(t, 8, "FLOP-FDEL", fdel(7))
	require.Equal(t, flight.Op(""), o.Changes[0].Op, "a newer deletion of what is gone moves its provenance")
	require.Empty(t, w.must(t, 7, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil)).Changes)

	o = w.must(t, 9, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "19 11:40", nil))
	require.Equal(t, flight.Create, o.Changes[0].Op)
	f = w.Flight(7)
	require.EqualValues(t, 4, f.Version, "goes on counting")
	require.NotContains(t, f.Scalars, "stnd", "starts empty")
	require.Equal(t, []string{"psdt"}, o.Changes[0].Lists, "the old entries go")
	require.Equal(t, flight.Day("2026-03-19"), f.OperationDay)

	require.Empty(t, w.must(t, 7, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", nil)).Changes, "older than the deletion")
	require.Empty(t, w.must(t, 8, "FLOP-FDEL", fdel(7)).Changes, "older than the creation")
}

func TestSeveralBodiesInOneMessage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil), w.fltr(t, 8, "CA4908", "18 12:40", nil))
	bodies := []sis.Record{
		flop(7, sis.Fields{"stnd": text("203")}), flop(8, sis.Fields{"stnd": text("209")}), flop(7, sis.Fields{"stnd": text("208")}),
	}
	o := w.must(t, 2, "FLOP-STND", bodies...)
	require.Len(t, o.Changes, 2)
	require.Equal(t, 2, o.Updated)
	require.Equal(t, text("208"), w.Flight(7).Scalars["stnd"], "applied in order")
	require.EqualValues(t, 2, w.Flight(7).Version)
	require.Empty(t, w.must(t, 2, "FLOP-STND", bodies...).Changes)
}

func TestDecideLeavesTheViewAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil), w.fltr(t, 8, "ZH4907", "18 11:40", sis.Fields{"maid": number(7)}))
	w.must(t, 2, "FLOP-PSDT", lists(7, "psdt", true, psdt("208")...))
	before := [2]*flight.Flight{w.Flight(7).Clone(), w.Flight(8).Clone()}
	for _, r := range []sis.Record{
		fdel(7), flop(8, sis.Fields{"maid": {}, "stnd": text("1")}), lists(7, "psdt", true, psdt("203")...),
		lists(7, "psht", false, entry("208", sis.Fields{"psid": text("IN")})),
	} {
		_, err := flight.Decide(w, w.message("FLOP-TEST", r), pos(3), at(3), w.opt)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(before, [2]*flight.Flight{w.Flight(7), w.Flight(8)}))
	}
}
