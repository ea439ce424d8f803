package store_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// full is a flight as a busy day leaves it: 40 scalars, two entries in each list, and who set each.
func full(flid int64) *flight.Flight {
	f := named(flid, 0)
	f.Provenance = map[string]message.Position{}
	for i, spec := range sis.ScalarSpecs() {
		if i >= 40 || spec.Name == "maid" {
			continue
		}
		f.Provenance[spec.Name] = message.Position{ID: 1_000_000 + flid}
		if _, found := f.Scalars[spec.Name]; !found {
			f.Scalars[spec.Name] = sample(&spec)
		}
	}
	for _, l := range sis.ListSpecs() {
		f.Provenance[l.Name] = message.Position{ID: 1_000_000 + flid}
		for i := range 2 {
			e := sis.Entry{Key: strconv.Itoa(i + 1), Fields: sis.Fields{}}
			for _, spec := range l.Fields {
				e.Fields[spec.Name] = sample(&spec)
			}
			f.Lists[l.Name] = append(f.Lists[l.Name], e)
		}
	}
	return f
}

func sample(f *sis.Field) sis.Value {
	switch f.Type() {
	case sis.Moment:
		return sis.MomentValue(noon)
	case sis.Number:
		return sis.NumberValue(12)
	case sis.Decimal:
		return sis.Value{Type: sis.Decimal, Str: "12.5"}
	case sis.Text, sis.Empty:
	}
	return sis.TextValue("B203A")
}

func BenchmarkFlights(b *testing.B) {
	s, pool := setup(b), dbtest.New(b)
	for _, n := range []int{1, 200} {
		var saves []store.Save
		var ids []int64
		for i := range n {
			ids = append(ids, int64(i+1))
			saves = append(saves, store.Save{After: full(int64(i + 1)), Lists: allLists()})
		}
		b.Run(fmt.Sprintf("new/%d", n), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, db.InTx(b.Context(), pool, func(tx pgx.Tx) error { return store.WriteAll(b.Context(), tx, s.SaveFlights(saves)) }))
			}
		})
		for i := range saves {
			saves[i].Lists = []string{"psdt"}
		}
		b.Run(fmt.Sprintf("save/%d", n), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, db.InTx(b.Context(), pool, func(tx pgx.Tx) error { return store.WriteAll(b.Context(), tx, s.SaveFlights(saves)) }))
			}
		})
		b.Run(fmt.Sprintf("load/%d", n), func(b *testing.B) {
			for b.Loop() {
				got, err := s.LoadFlights(b.Context(), pool, ids)
				require.NoError(b, err)
				require.Len(b, got, n)
			}
		})
	}
}
