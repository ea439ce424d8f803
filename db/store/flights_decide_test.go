package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// TestFlights_storedStateIsTheDecidedState: what Decide calls a change is all that has to be saved.
func TestFlights_storedStateIsTheDecidedState(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	const flid = 201
	scheduled := func(lists map[string]sis.List) sis.Record {
		fields := sis.Fields{"flno": sis.TextValue("XX1"), "mvin": sis.TextValue("A"), "sodt": sis.MomentValue(noon)}
		return sis.Record{FLID: flid, Fields: fields, Lists: lists}
	}
	stands := func(names ...string) sis.List {
		l := sis.List{Clear: true}
		for i, name := range names {
			l.Entries = append(l.Entries, sis.Entry{Key: string(rune('1' + i)), Fields: sis.Fields{"psst": sis.TextValue(name)}})
		}
		return l
	}
	steps := []struct {
		what string
		kind message.Meta
		rec  sis.Record
	}{
		{"created", message.Meta{TYPE: "SCHD", STYP: "ADFT"}, scheduled(map[string]sis.List{"psdt": stands("208", "209")})},
		{"a list replaced", message.Meta{TYPE: "FLOP", STYP: "PSDT"}, sis.Record{FLID: flid, Lists: map[string]sis.List{"psdt": stands("210")}}},
		{"a time kept by stand", message.Meta{TYPE: "FLOP", STYP: "TIPT"}, sis.Record{FLID: flid, Lists: map[string]sis.List{
			"tipt": {Entries: []sis.Entry{{Key: "211", Fields: sis.Fields{"trtm": sis.MomentValue(noon)}}}},
		}}},
		{"deleted", message.Meta{TYPE: "FLOP", STYP: "FDEL"}, sis.Record{FLID: flid, Delete: true}},
		{"created again, without stands", message.Meta{TYPE: "SCHD", STYP: "ADFT"}, scheduled(nil)},
		{"stands again", message.Meta{TYPE: "FLOP", STYP: "PSDT"}, sis.Record{FLID: flid, Lists: map[string]sis.List{"psdt": stands("208")}}},
	}
	for i, step := range steps {
		known, err := s.LoadFlights(t.Context(), tx, []int64{flid})
		require.NoError(t, err)
		set := flight.NewSet(known...)
		m := sis.Message{Meta: step.kind, Records: []sis.Record{step.rec}}
		outcome, err := flight.Decide(set, m, message.Position{ID: int64(i + 1)}, noon, flight.Options{Zone: noon.Location()})
		require.NoError(t, err)
		var saves []store.Save
		for _, c := range outcome.Changes {
			saves = append(saves, store.Save{After: c.After, Lists: c.Lists})
		}
		require.NoError(t, store.WriteAll(t.Context(), tx, s.SaveFlights(saves)))
		set.Apply(outcome)
		require.Empty(t, diff(set.Flight(flid), load(t, s, tx, flid)), step.what)
	}
}
