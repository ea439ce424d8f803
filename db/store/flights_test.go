package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// TestFlights_comeBackAsTheyWereSaved covers every scalar and every list of the catalogue.
func TestFlights_comeBackAsTheyWereSaved(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	flid := int64(1000) // the other tests of this package have the smaller ones
	rapid.Check(t, func(t *rapid.T) {
		flid++
		first := flights.Draw(t, "first")
		first.FLID = flid
		save(t, s, tx, first, allLists())
		require.Empty(t, diff(first, load(t, s, tx, flid)))

		// Another state; of its lists only those named may differ.
		second := flights.Draw(t, "second")
		second.FLID = flid
		var changed []string
		for _, name := range allLists() {
			if rapid.Bool().Draw(t, "change "+name) {
				changed = append(changed, name)
				continue
			}
			delete(second.Lists, name)
			if entries := first.Lists[name]; entries != nil {
				second.Lists[name] = entries
			}
		}
		save(t, s, tx, second, changed)
		require.Empty(t, diff(second, load(t, s, tx, flid)))
	})
}

// One schedule may bring more flights than one statement takes.
func TestSaveFlights_inPieces(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	const first, many = 500_000, 10_001
	saves := make([]store.Save, many)
	for i := range saves {
		saves[i] = store.Save{After: named(first+int64(i), 0), Lists: []string{"gtdt"}}
		saves[i].After.Lists = map[string][]sis.Entry{"gtdt": {{Key: "1", Fields: sis.Fields{"gate": sis.TextValue(fmt.Sprint(i))}}}}
	}
	require.NoError(t, store.WriteAll(t.Context(), tx, s.SaveFlights(saves)))
	for _, i := range []int64{0, 4999, 5000, many - 1} {
		require.Equal(t, fmt.Sprint(i), load(t, s, tx, first+i).Lists["gtdt"][0].Fields["gate"].Str)
	}
	var n int
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM flight_schd WHERE flid >= $1", first).Scan(&n))
	require.Equal(t, many, n)
}

func TestLoadFlights_bringsMastersAndChildrenAllTheWay(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	var saves []store.Save
	for flid, maid := range map[int64]int64{1: 0, 2: 1, 3: 2, 4: 2, 5: 0, 6: 5, 7: 99, 8: 8} {
		saves = append(saves, store.Save{After: named(flid, maid)})
	}
	require.NoError(t, store.WriteAll(t.Context(), tx, s.SaveFlights(saves)))

	for _, c := range []struct{ ask, want []int64 }{
		{nil, nil},
		{[]int64{3}, []int64{1, 2, 3, 4}},
		{[]int64{1, 6}, []int64{1, 2, 3, 4, 5, 6}},
		{[]int64{99}, []int64{7}}, // a master that is not there yet
		{[]int64{8, 1000}, []int64{8}},
	} {
		got, err := s.LoadFlights(t.Context(), tx, c.ask)
		require.NoError(t, err)
		require.Equal(t, c.want, flids(got), "asked for %v", c.ask)
	}
}

func TestFindFlights(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	early, child, gone, late := named(101, 0), named(102, 101), named(103, 0), named(104, 0)
	late.OperationDay = "2026-12-01"
	late.Scalars["sodt"] = sis.MomentValue(noon.AddDate(0, 0, 1))
	late.Scalars["mvin"] = sis.TextValue("D")
	late.Scalars["stnd"] = sis.TextValue("S1")
	early.Lists["psdt"] = []sis.Entry{{Key: "1", Fields: sis.Fields{"psst": sis.TextValue("S1")}}}
	early.Lists["gtdt"] = []sis.Entry{{Key: "1", Fields: sis.Fields{"gate": sis.TextValue("G1")}}}
	gone.DeletedAt, gone.DeletedBy = noon, message.Position{ID: 9}
	require.NoError(t, store.WriteAll(t.Context(), tx, s.SaveFlights([]store.Save{
		{After: early, Lists: []string{"psdt", "gtdt"}}, {After: child}, {After: gone}, {After: late},
	})))
	for name, c := range map[string]struct {
		filter store.FlightFilter
		want   []int64
	}{
		"all live":      {store.FlightFilter{}, []int64{101, 102, 104}},
		"masters":       {store.FlightFilter{Masters: true}, []int64{101, 104}},
		"operation day": {store.FlightFilter{OperationDay: "2026-12-01"}, []int64{104}},
		"flno":          {store.FlightFilter{FLNO: "XX102"}, []int64{102}},
		"mvin":          {store.FlightFilter{MVIN: "D"}, []int64{104}},
		"stand":         {store.FlightFilter{Stand: "S1"}, []int64{101, 104}},
		"gate":          {store.FlightFilter{Gate: "G1", Stand: "S1"}, []int64{101}},
		"none":          {store.FlightFilter{Gate: "G2"}, nil},
	} {
		for _, limit := range []int{1, 2, 100} { // pages of any size are the same whole
			c.filter.Limit, c.filter.After = limit, store.FlightCursor{}
			var got []*flight.Flight
			for more := true; more; {
				page, err := s.FindFlights(t.Context(), tx, c.filter)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.FLIDs), limit)
				require.NoError(t, s.EachFlight(t.Context(), tx, page.FLIDs, func(f *flight.Flight) error {
					got = append(got, f)
					return nil
				}))
				if more = page.Next != nil; more {
					c.filter.After = *page.Next
				}
			}
			require.Equal(t, c.want, flids(got), "%s, %d a page", name, limit)
		}
	}
	f, err := s.Flight(t.Context(), tx, 103)
	require.NoError(t, err)
	require.False(t, f.Live())
	f, err = s.Flight(t.Context(), tx, 105)
	require.NoError(t, err)
	require.Nil(t, f)
}

func TestConsistencyPoint(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	point := func() message.Position {
		p, err := s.ConsistencyPoint(t.Context(), tx)
		require.NoError(t, err)
		return p
	}
	add := func(id, generation int, state string) {
		_, err := tx.Exec(t.Context(), `INSERT INTO proc_state (msg_id, generation, state, created_at, updated_at, finished_at)
			VALUES ($1, $2, $3, $4, $4, CASE WHEN $3 IN ('PENDING', 'FAILED') THEN NULL ELSE $4::timestamptz END)`, id, generation, state, noon)
		require.NoError(t, err)
	}
	require.Zero(t, point())
	add(1, 0, "PENDING")
	require.Zero(t, point())
	_, err := tx.Exec(t.Context(), `DELETE FROM proc_state`)
	require.NoError(t, err)

	add(1, 0, "SUCCEEDED")
	add(2, 0, "DEAD")
	add(4, 0, "FAILED")
	add(5, 0, "SUCCEEDED")
	require.Equal(t, message.Position{ID: 2}, point())

	_, err = tx.Exec(t.Context(), `INSERT INTO proc_state_hst
		SELECT (json_populate_record(NULL::proc_state_hst, (to_jsonb(p) || jsonb_build_object('archived_at', $1::timestamptz))::json)).*
		FROM proc_state p WHERE msg_id <= 2`, noon)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `DELETE FROM proc_state WHERE msg_id <= 2`)
	require.NoError(t, err)
	require.Equal(t, message.Position{ID: 2}, point(), "archived ones count")

	_, err = tx.Exec(t.Context(), `DELETE FROM proc_state`)
	require.NoError(t, err)
	add(1, 1, "PENDING")
	require.Equal(t, message.Position{ID: 2}, point(), "ids have begun again")
	_, err = tx.Exec(t.Context(), `UPDATE proc_state SET state = 'SKIPPED', finished_at = $1`, noon)
	require.NoError(t, err)
	require.Equal(t, message.Position{Generation: 1, ID: 1}, point())
}

func setup(tb testing.TB) *store.Store {
	tb.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(tb, err)
	return store.New(zone)
}

var noon = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)

// named is a flight of which only what must be there is there.
func named(flid, maid int64) *flight.Flight {
	f := &flight.Flight{
		FLID: flid, OperationDay: "2026-11-30", Version: 1, UpdatedAt: noon, Lists: map[string][]sis.Entry{},
		Scalars: sis.Fields{
			"flno": sis.TextValue(fmt.Sprintf("XX%d", flid)), "mvin": sis.TextValue("A"), "sodt": sis.MomentValue(noon),
		},
	}
	if maid != 0 {
		f.Scalars["maid"] = sis.NumberValue(maid)
	}
	return f
}

func flids(flights []*flight.Flight) (ids []int64) {
	for _, f := range flights {
		ids = append(ids, f.FLID)
	}
	return ids
}

func save(t require.TestingT, s *store.Store, tx pgx.Tx, f *flight.Flight, lists []string) {
	require.NoError(t, store.WriteAll(ctx(), tx, s.SaveFlights([]store.Save{{After: f, Lists: lists}})))
}

func load(t require.TestingT, s *store.Store, tx pgx.Tx, flid int64) *flight.Flight {
	f, err := s.Flight(ctx(), tx, flid)
	require.NoError(t, err)
	return f
}

// diff takes nil and empty for the same.
func diff(want, got *flight.Flight) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Transformer("text", func(m json.RawMessage) string { return string(m) }))
}

func allLists() (names []string) {
	for _, l := range sis.ListSpecs() {
		names = append(names, l.Name)
	}
	return names
}
