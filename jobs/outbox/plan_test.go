package outbox_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/outbox"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	require.Empty(t, outbox.Newest(nil))
	require.Equal(t, []outbox.Send{{ID: 4, Represents: []int64{2, 4}}, {ID: 5, Represents: []int64{1, 3, 5}}},
		outbox.Newest([]outbox.Unsent{{1, 7}, {2, 8}, {3, 7}, {4, 8}, {5, 7}}))
}

// Every waiting event is represented exactly once, by the newest of its flight.
func TestNewestRepresentsAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var waiting []outbox.Unsent
		flights := map[int64]int64{}
		for _, id := range rapid.SliceOfDistinct(rapid.Int64Range(1, 50), rapid.ID[int64]).Draw(rt, "ids") {
			flights[id] = rapid.Int64Range(1, 5).Draw(rt, "flid")
			waiting = append(waiting, outbox.Unsent{ID: id, FLID: flights[id]})
		}
		sends := outbox.Newest(waiting)
		require.True(rt, slices.IsSortedFunc(sends, func(a, b outbox.Send) int { return int(a.ID - b.ID) }))
		var represented int
		for _, s := range sends {
			represented += len(s.Represents)
			require.Equal(rt, s.ID, slices.Max(s.Represents))
			for _, id := range s.Represents {
				require.Equal(rt, flights[s.ID], flights[id])
			}
		}
		require.Equal(rt, len(waiting), represented)
	})
}
