package inbox

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

const delay = CommitDelay(5 * time.Minute)

var start = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// at is a moment s seconds after the start.
func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

func rows(ids ...int64) []Row {
	out := make([]Row, len(ids))
	for i, id := range ids {
		out[i] = Row{ID: id, ReceivedAt: start}
	}
	return out
}

func ids(rows []Row) []int64 {
	out := []int64{}
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

func hole(first, last int64, seen int) Hole { return Hole{Range{first, last}, at(seen)} }

func TestAdvance(t *testing.T) {
	t.Parallel()
	type want struct {
		w        int64
		take     []int64
		holes    []Hole
		released []Hole
		opened   []Hole
		more     bool
	}
	for name, tc := range map[string]struct {
		cursor Cursor
		rows   []Row
		limit  int
		now    time.Time
		want   want
	}{
		"nothing new":                    {cursor: Cursor{W: 7}, now: at(0), want: want{w: 7}},
		"contiguous":                     {cursor: Cursor{W: 7}, rows: rows(8, 9), now: at(0), want: want{w: 9, take: []int64{8, 9}}},
		"limit":                          {cursor: Cursor{W: 7}, rows: rows(8, 9, 10), limit: 2, now: at(0), want: want{w: 9, take: []int64{8, 9}, more: true}},
		"a hole stops W and what's next": {cursor: Cursor{W: 7}, rows: rows(8, 10, 11), now: at(0), want: want{w: 8, take: []int64{8}, holes: []Hole{hole(9, 9, 0)}, opened: []Hole{hole(9, 9, 0)}}},
		"first start above 1":            {rows: rows(1001, 1002), now: at(0), want: want{holes: []Hole{hole(1, 1000, 0)}, opened: []Hole{hole(1, 1000, 0)}}},
		"the last id there can be": {
			cursor: Cursor{W: 7, Holes: []Hole{hole(8, math.MaxInt64-1, 0)}}, rows: rows(math.MaxInt64), now: at(300),
			want: want{w: math.MaxInt64, take: []int64{math.MaxInt64}, released: []Hole{hole(8, math.MaxInt64-1, 0)}},
		},
		"holes behind a hole are seen": {
			cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 0)}}, rows: rows(3, 5, 9), now: at(60),
			want: want{w: 1, holes: []Hole{hole(2, 2, 0), hole(4, 4, 60), hole(6, 8, 60)}, opened: []Hole{hole(4, 4, 60), hole(6, 8, 60)}},
		},
		"not released a second early": {cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 0)}}, rows: rows(3), now: at(299), want: want{w: 1, holes: []Hole{hole(2, 2, 0)}}},
		"released at the limit":       {cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 0)}}, rows: rows(3), now: at(300), want: want{w: 3, take: []int64{3}, released: []Hole{hole(2, 2, 0)}}},
		"all that are old enough go in one round": {
			cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 0), hole(4, 4, 1), hole(6, 6, 2)}}, rows: rows(3, 5, 7), now: at(301),
			want: want{w: 5, take: []int64{3, 5}, released: []Hole{hole(2, 2, 0), hole(4, 4, 1)}, holes: []Hole{hole(6, 6, 2)}},
		},
		"an old hole behind a young one waits": {
			cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 200), hole(4, 4, 0)}}, rows: rows(3, 5), now: at(300),
			want: want{w: 1, holes: []Hole{hole(2, 2, 200), hole(4, 4, 0)}},
		},
		"filled": {cursor: Cursor{W: 1, Holes: []Hole{hole(2, 2, 0)}}, rows: rows(2, 3), now: at(60), want: want{w: 3, take: []int64{2, 3}}},
		"a filler splits, ages stay": {
			cursor: Cursor{W: 1, Holes: []Hole{hole(2, 9, 0)}}, rows: rows(5, 10), now: at(60),
			want: want{w: 1, holes: []Hole{hole(2, 4, 0), hole(6, 9, 0)}},
		},
		"a filler at the front shrinks and is taken": {
			cursor: Cursor{W: 1, Holes: []Hole{hole(2, 9, 0)}}, rows: rows(2, 3, 10), now: at(60),
			want: want{w: 3, take: []int64{2, 3}, holes: []Hole{hole(4, 9, 0)}},
		},
		"a new hole beside an old one has an age of its own": {
			// 5 was there and showed 3..4; it was deleted, so 5..6 is missing only from now on
			cursor: Cursor{W: 2, Holes: []Hole{hole(3, 4, 0)}}, rows: rows(7), now: at(299),
			want: want{w: 2, holes: []Hole{hole(3, 4, 0), hole(5, 6, 299)}, opened: []Hole{hole(5, 6, 299)}},
		},
		"the rows that showed it are gone, it ages all the same": {
			cursor: Cursor{W: 2, Holes: []Hole{hole(3, 4, 0)}}, now: at(300),
			want: want{w: 4, released: []Hole{hole(3, 4, 0)}},
		},
		"no jump over the unknown": {
			cursor: Cursor{W: 2, Holes: []Hole{hole(6, 7, 0)}}, rows: rows(3), now: at(300),
			want: want{w: 3, take: []int64{3}, holes: []Hole{hole(6, 7, 0)}},
		},
		"a look that did not reach a hole leaves it": {
			cursor: Cursor{W: 2, Holes: []Hole{hole(3, 3, 290), hole(9, 9, 0)}}, rows: rows(4, 5), now: at(300),
			want: want{w: 2, holes: []Hole{hole(3, 3, 290), hole(9, 9, 0)}},
		},
		"step 3":                 {cursor: Cursor{W: 1, Step: 3}, rows: rows(4, 7, 10), now: at(0), want: want{w: 10, take: []int64{4, 7, 10}}},
		"step 3, offset changes": {cursor: Cursor{W: 4, Step: 3}, rows: rows(6, 8, 11), now: at(0), want: want{w: 11, take: []int64{6, 8, 11}}},
		"step 3, one missing": {
			cursor: Cursor{W: 1, Step: 3}, rows: rows(7, 10), now: at(0),
			want: want{w: 1, holes: []Hole{hole(2, 6, 0)}, opened: []Hole{hole(2, 6, 0)}},
		},
		"step 3, the missing one comes": {cursor: Cursor{W: 1, Step: 3, Holes: []Hole{hole(2, 6, 0)}}, rows: rows(4, 7), now: at(1), want: want{w: 7, take: []int64{4, 7}}},
		"step 3, first id 2":            {cursor: Cursor{Step: 3}, rows: rows(2, 5), now: at(0), want: want{w: 5, take: []int64{2, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.limit == 0 {
				tc.limit = 100
			}
			before := append([]Hole(nil), tc.cursor.Holes...)
			p := Advance(tc.cursor, tc.rows, Limits{Take: tc.limit, Delay: delay}, tc.now)
			got := want{p.Cursor.W, ids(p.Take), p.Cursor.Holes, p.Released, p.Opened, p.More}
			require.Empty(t, cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()))
			require.Equal(t, before, append([]Hole(nil), tc.cursor.Holes...), "the cursor given must not change")
		})
	}
}

// TestAdvanceSettled: evidence that a hole can no longer be filled replaces its age.
func TestAdvanceSettled(t *testing.T) {
	t.Parallel()
	c := Cursor{W: 1, Holes: []Hole{hole(2, 2, 10), hole(4, 4, 20)}}
	for name, tc := range map[string]struct {
		settled time.Time
		w       int64
	}{
		"no evidence":             {time.Time{}, 1},
		"not older than the hole": {at(10), 1},
		"older than the first":    {at(11), 3},
		"older than both":         {at(21), 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Advance(c, rows(3, 5), Limits{Take: 10, Delay: delay, Settled: tc.settled}, at(30))
			require.Equal(t, tc.w, p.Cursor.W)
		})
	}
}

func TestPlanNextRelease(t *testing.T) {
	t.Parallel()
	held := Advance(Cursor{W: 1}, rows(3, 4), Limits{Take: 10, Delay: delay}, at(0))
	require.True(t, held.Held())
	require.Equal(t, at(300), held.NextRelease(delay))

	full := Advance(Cursor{W: 1}, rows(2, 3, 5), Limits{Take: 1, Delay: delay}, at(0))
	require.False(t, full.Held(), "the limit stops the round, not the hole")
	require.Zero(t, full.NextRelease(delay))
}

func TestAdvanceReceivedAt(t *testing.T) {
	t.Parallel()
	c := Cursor{W: 1, ReceivedAt: at(10)}
	for name, tc := range map[string]struct {
		received time.Time
		want     time.Time
	}{
		"later":                      {at(20), at(20)},
		"earlier":                    {at(5), at(10)},
		"unknown":                    {time.Time{}, at(10)},
		"in the future of our clock": {at(3600), at(10)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Advance(c, []Row{{ID: 2, ReceivedAt: tc.received}}, Limits{Take: 10, Delay: delay}, at(100))
			require.Equal(t, tc.want, p.Cursor.ReceivedAt)
		})
	}
}
