package flight_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

// swept is a world in which flight 7 is in the history; message 20 was the last that touched it, at version 9.
func swept(t *testing.T) *world {
	t.Helper()
	w := setup(t)
	w.Put(flight.Ghost(7, "2026-03-01", 9, pos(20), at(100)))
	return w
}

func TestSwept_isUnknownToMessages(t *testing.T) {
	t.Parallel()
	for kind, record := range map[string]sis.Record{
		"FLOP-STND": flop(7, sis.Fields{"stnd": text("203")}),
		"FLOP-FDEL": {FLID: 7, Delete: true},
	} {
		for _, id := range []int64{15, 30} {
			require.Empty(t, swept(t).must(t, id, kind, record).Changes, "%s %d", kind, id)
		}
	}
}

// A schedule from before it went does not bring it back, one from after does: with another day if need be, nothing of its
// old life, and a version above the one its readers have seen last.
func TestSwept_comesBackByWhatIsNewer(t *testing.T) {
	t.Parallel()
	w := swept(t)
	require.Empty(t, w.must(t, 15, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil)).Changes, "older than the last that touched it")

	o := w.must(t, 30, "SCHD-ADFT", w.fltr(t, 7, "CA4907", "18 11:40", sis.Fields{"stnd": text("203")}))
	require.Equal(t, flight.Create, o.Changes[0].Op)
	f := w.Flight(7)
	require.True(t, f.Live())
	require.False(t, f.Swept)
	require.EqualValues(t, 10, f.Version)
	require.Equal(t, flight.Day("2026-03-18"), f.OperationDay)
	require.Equal(t, pos(20), f.Provenance["fdel"])
	require.Len(t, w.must(t, 31, "FLOP-STND", flop(7, sis.Fields{"stnd": text("208")})).Changes, 1)
}

// A child that names it as its master stands for itself, unless it is older: then it would have gone with it.
func TestSwept_asMaster(t *testing.T) {
	t.Parallel()
	w := swept(t)
	child := func(id, flid int64) flight.Outcome {
		return w.must(t, id, "SCHD-ADFT", w.fltr(t, flid, "CA4907", "18 11:40", sis.Fields{"maid": number(7)}))
	}
	require.Nil(t, child(30, 8).Changes[0].Master)
	require.True(t, w.Flight(8).Live())
	child(15, 9)
	require.False(t, w.Flight(9).Live())
}
