package sweep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
	"msgexchange/jobs/sweep"
)

// now is a night of December; everything else is told as hours before it.
var now = time.Date(2026, 12, 10, 3, 30, 0, 0, time.UTC)

func policy() sweep.Policy {
	return sweep.Policy{Days: 3, Zone: time.UTC, After: map[sweep.Rule]time.Duration{
		sweep.Deleted: 24 * time.Hour, sweep.Cancelled: 24 * time.Hour, sweep.Departed: 24 * time.Hour, sweep.Arrived: 24 * time.Hour, sweep.Silent: 7 * 24 * time.Hour,
	}}
}

func hours(n int) time.Time { return now.Add(-time.Duration(n) * time.Hour) }

func timed(t time.Time) sis.Value { return sis.Value{Type: sis.Moment, Num: t.Unix()} }

// of makes a flight scheduled and last spoken of that many hours ago.
func of(flid int64, mvin string, sodt int, change ...func(*flight.Flight)) *flight.Flight {
	f := &flight.Flight{
		FLID: flid, OperationDay: flight.DayOf(hours(sodt), time.UTC, 0), Version: 1, UpdatedAt: hours(sodt), LastMessage: message.Position{ID: 1},
		Scalars: sis.Fields{"mvin": {Type: sis.Text, Str: mvin}, "sodt": timed(hours(sodt))},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

func with(name string, v sis.Value) func(*flight.Flight) {
	return func(f *flight.Flight) { f.Scalars[name] = v }
}

func at(name string, n int) func(*flight.Flight) { return with(name, timed(hours(n))) }

func linked(name string, flid int64) func(*flight.Flight) {
	return with(name, sis.Value{Type: sis.Number, Num: flid})
}

func deleted(n int) func(*flight.Flight) {
	return func(f *flight.Flight) { f.DeletedBy, f.DeletedAt = message.Position{ID: 9}, hours(n) }
}

func spoken(n int) func(*flight.Flight) { return func(f *flight.Flight) { f.UpdatedAt = hours(n) } }

func TestHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    *flight.Flight
		want sweep.Rule
	}{
		"deleted":                          {of(1, "D", 100, deleted(24)), sweep.Deleted},
		"deleted a moment ago":             {of(1, "D", 100, deleted(23)), ""},
		"deleted, of a day that stays":     {of(1, "D", 75, deleted(74)), ""},
		"deleted counts, not that it left": {of(1, "D", 100, at("actt", 99), deleted(1)), ""},
		"cancelled":                        {of(1, "D", 100, at("cncl", 120)), sweep.Cancelled},
		"cancelled a moment ago":           {of(1, "D", 100, at("cncl", 23)), ""},
		"left":                             {of(1, "D", 100, at("actt", 99)), sweep.Departed},
		"left and came back":               {of(1, "D", 100, at("actt", 99), with("fret.reid", sis.Value{Type: sis.Text, Str: "A"})), ""},
		"left late":                        {of(1, "D", 100, at("actt", 23)), ""},
		"came":                             {of(1, "A", 100, at("actt", 24)), sweep.Arrived},
		"came, of a day that stays":        {of(1, "A", 75, at("actt", 74)), ""},
		"never came":                       {of(1, "A", 100), ""},
		"never came, and nobody asks":      {of(1, "A", 168), sweep.Silent},
		"never came, spoken of":            {of(1, "A", 200, spoken(167)), ""},
		"is expected":                      {of(1, "A", 200, at("estt", 100)), ""},
	} {
		rule, due := policy().Holds(c.f, now)
		require.Equal(t, c.want, rule, name)
		require.Equal(t, c.want != "", due, name)
	}
}

func TestHolds_off(t *testing.T) {
	t.Parallel()
	p := policy()
	delete(p.After, sweep.Departed)
	p.After[sweep.Silent] = 0
	_, due := p.Holds(of(1, "D", 500, at("actt", 499)), now)
	require.False(t, due)
}

// The day is the airport's: with a cut-off of 4 the night at 3:30 still belongs to the day before.
func TestBefore(t *testing.T) {
	t.Parallel()
	p := policy()
	require.Equal(t, flight.Day("2026-12-07"), p.Before(now))
	p.CutoffHour = 4
	require.Equal(t, flight.Day("2026-12-06"), p.Before(now))
	p.Zone = time.FixedZone("", 8*3600)
	require.Equal(t, flight.Day("2026-12-07"), p.Before(now))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	gone := at("actt", 90)
	for name, c := range map[string]struct {
		flights []*flight.Flight
		want    []int64
	}{
		"alone":                         {[]*flight.Flight{of(1, "D", 100, gone)}, []int64{1}},
		"a family, all over":            {[]*flight.Flight{of(1, "D", 100, gone), of(2, "D", 100, gone, linked("maid", 1))}, []int64{1, 2}},
		"a child is not over":           {[]*flight.Flight{of(1, "D", 100, gone), of(2, "D", 100, linked("maid", 1)), of(3, "D", 100, gone, linked("maid", 1))}, nil},
		"a master is not over":          {[]*flight.Flight{of(1, "D", 100), of(2, "D", 100, gone, linked("maid", 1))}, nil},
		"a child's child is not over":   {[]*flight.Flight{of(1, "D", 100, gone), of(2, "D", 100, gone, linked("maid", 1)), of(3, "D", 100, linked("maid", 2))}, nil},
		"a deleted child goes alone":    {[]*flight.Flight{of(1, "D", 100), of(2, "D", 100, linked("maid", 1), deleted(30))}, []int64{2}},
		"a deleted child holds nobody":  {[]*flight.Flight{of(1, "D", 100, gone), of(2, "D", 100, linked("maid", 1), deleted(1))}, []int64{1}},
		"its master is unknown":         {[]*flight.Flight{of(2, "D", 100, gone, linked("maid", 1))}, []int64{2}},
		"its own child":                 {[]*flight.Flight{of(2, "D", 100, gone, linked("maid", 2))}, []int64{2}},
		"a loop":                        {[]*flight.Flight{of(1, "D", 100, gone, linked("maid", 2)), of(2, "D", 100, gone, linked("maid", 1))}, []int64{1, 2}},
		"the aircraft is still here":    {[]*flight.Flight{of(1, "A", 100, gone, linked("taid", 2)), of(2, "D", -5, linked("taid", 1))}, nil},
		"the aircraft has left":         {[]*flight.Flight{of(1, "A", 100, gone, linked("taid", 2)), of(2, "D", 99, gone, linked("taid", 1))}, []int64{1, 2}},
		"its departure was deleted":     {[]*flight.Flight{of(1, "A", 100, gone, linked("taid", 2)), of(2, "D", -5, linked("taid", 1), deleted(1))}, []int64{1}},
		"the master's aircraft is here": {[]*flight.Flight{of(1, "A", 100, gone, linked("taid", 3)), of(2, "A", 100, gone, linked("maid", 1)), of(3, "D", -5)}, nil},
		"deleted, its partner lives":    {[]*flight.Flight{of(1, "A", 100, linked("taid", 2), deleted(30)), of(2, "D", -5)}, []int64{1}},
	} {
		var candidates, got []int64
		for _, f := range c.flights {
			candidates = append(candidates, f.FLID)
		}
		for _, g := range sweep.Choose(policy(), append(candidates, 77), flight.NewSet(c.flights...), now) {
			got = append(got, g.Flight.FLID)
		}
		require.Equal(t, c.want, got, name)
	}
}

// Whatever the links: of those that stay, none is left without a master or a child that lived, and none of a day that
// stays goes. Once every flight's time is over, all go.
func TestChoose_property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 8).Draw(t, "flights")
		var flights []*flight.Flight
		var candidates []int64
		for flid := int64(1); flid <= n; flid++ {
			f := of(flid, rapid.SampledFrom([]string{"A", "D"}).Draw(t, "mvin"), rapid.IntRange(-48, 300).Draw(t, "sodt"))
			if rapid.Bool().Draw(t, "over") {
				at("actt", rapid.IntRange(0, 300).Draw(t, "actt"))(f)
			}
			if maid := rapid.Int64Range(0, n).Draw(t, "maid"); maid > 0 {
				linked("maid", maid)(f)
			}
			if taid := rapid.Int64Range(0, n).Draw(t, "taid"); taid > 0 {
				linked("taid", taid)(f)
			}
			if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
				deleted(rapid.IntRange(0, 100).Draw(t, "deletedAt"))(f)
			}
			flights, candidates = append(flights, f), append(candidates, flid)
		}
		set, going := flight.NewSet(flights...), map[int64]bool{}
		for _, g := range sweep.Choose(policy(), candidates, set, now) {
			going[g.Flight.FLID] = true
			if g.Flight.OperationDay >= policy().Before(now) {
				t.Fatalf("%d is of %s", g.Flight.FLID, g.Flight.OperationDay)
			}
		}
		for _, f := range flights {
			master := set.Flight(f.Master())
			if f.Live() && master.Live() && going[f.FLID] != going[master.FLID] {
				t.Fatalf("%d and its master %d are parted", f.FLID, master.FLID)
			}
			if partner := set.Flight(sweep.Partner(f)); f.Live() && going[f.FLID] && partner.Live() {
				if _, due := policy().Holds(partner, now); !due {
					t.Fatalf("%d goes, its partner %d does not", f.FLID, partner.FLID)
				}
			}
		}
		if all := sweep.Choose(policy(), candidates, set, now.AddDate(1, 0, 0)); len(all) != len(flights) {
			t.Fatalf("a year later %d of %d go", len(all), len(flights))
		}
	})
}
