package flight_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// FuzzDecide: whatever a message says about the flights of a day, deciding does not panic, refuses only what breaks a rule,
// leaves what it was given as it was, and finds nothing more to do when the same message comes again. The corpus is every
// golden message of the wire.
func FuzzDecide(f *testing.F) {
	names, err := filepath.Glob("../sis/testdata/*/*/in.xml")
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := setup(t)
		m, err := sis.Decode(text, sis.Options{Zone: w.opt.Zone})
		if err != nil {
			return
		}
		w.apply(t, "testdata/day.xml", dayID)
		before := w.states(m)
		o, err := flight.Decide(w, m, pos(dayID+1), at(1), w.opt)
		require.Empty(t, cmp.Diff(before, w.states(m)))
		if err != nil {
			require.Equal(t, fault.Protocol, fault.Of(err))
			return
		}
		for _, c := range o.Changes {
			if c.Op != "" {
				require.Equal(t, version(c.Before)+1, c.After.Version)
			}
		}
		outbox.Build(outbox.Cause{Pos: pos(dayID + 1), Meta: m.Meta}, o, outbox.Options{Zone: w.opt.Zone})
		w.Apply(o)
		again, err := flight.Decide(w, m, pos(dayID+1), at(1), w.opt)
		require.NoError(t, err)
		for _, c := range again.Changes {
			require.Empty(t, c.Op, "flight %d", c.After.FLID)
		}
	})
}

// states are the flights a message is about.
func (w *world) states(m sis.Message) map[int64]*flight.Flight {
	out := map[int64]*flight.Flight{}
	for _, r := range m.Records {
		if f := w.Flight(r.FLID); f != nil {
			out[r.FLID] = f.Clone()
		}
	}
	return out
}

func version(f *flight.Flight) int64 {
	if f == nil {
		return 0
	}
	return f.Version
}
