package outbox_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/outbox"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	runs := func(after, want int64, spans ...outbox.Span) []outbox.Span {
		got, _ := outbox.Runs(spans, after, want)
		return got
	}
	require.Empty(t, runs(0, 10))
	a, b, far := outbox.Span{First: 1, Last: 9, Amount: 5}, outbox.Span{First: 11, Last: 19, Amount: 5}, outbox.Span{First: 9000, Last: 9000, Amount: 1}
	require.Equal(t, []outbox.Span{{First: 1, Last: 19, Amount: 10}, far}, runs(0, 100, a, b, far), "neighbours are one")
	require.Equal(t, []outbox.Span{a}, runs(0, 5, a, b, far), "no more than are wanted")
	require.Equal(t, []outbox.Span{{First: 5, Last: 19, Amount: 10}}, runs(4, 6, a, b, far))
	require.Equal(t, []outbox.Span{b}, runs(9, 1, a, b, far), "what was read is over")
	again := outbox.Span{First: 3, Last: 3, Amount: 1}
	require.Equal(t, []outbox.Span{{First: 1, Last: 9, Amount: 6}}, runs(0, 5, a, again, b), "one that waits again is not read twice")
}

// Whatever spans there are, and however few of them are taken at a time, those who read run after run meet every event that waits
// once, in the order of the ids.
func TestRunsMeetEveryEventInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) outbox.Span {
			first := rapid.Int64Range(1, 500).Draw(rt, "first")
			return outbox.Span{First: first, Last: first + rapid.Int64Range(0, 60).Draw(rt, "width"), Amount: rapid.Int64Range(1, 9).Draw(rt, "amount")}
		}), 0, 30).Draw(rt, "spans")
		slices.SortStableFunc(spans, func(a, b outbox.Span) int { return cmp.Compare(a.First, b.First) })
		var waiting, met []int64
		for id := int64(1); id < 600; id++ {
			if slices.ContainsFunc(spans, func(s outbox.Span) bool { return s.First <= id && id <= s.Last }) && rapid.Bool().Draw(rt, "waits") {
				waiting = append(waiting, id)
			}
		}
		want, page := rapid.Int64Range(1, 20).Draw(rt, "want"), rapid.IntRange(1, 7).Draw(rt, "page")
		for after := int64(0); ; {
			rest := slices.DeleteFunc(slices.Clone(spans), func(s outbox.Span) bool { return s.Last <= after })
			runs, used := outbox.Runs(rest[:min(page, len(rest))], after, want)
			require.Equal(rt, len(rest) > 0, used > 0, "it comes to an end")
			if used == 0 {
				break
			}
			for _, r := range runs {
				require.Greater(rt, r.First, after)
				for _, id := range waiting {
					if r.First <= id && id <= r.Last {
						met = append(met, id)
					}
				}
				after = r.Last
			}
		}
		require.Equal(rt, waiting, met)
	})
}
