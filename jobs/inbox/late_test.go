package inbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestLate(t *testing.T) {
	t.Parallel()
	passed := []Hole{hole(1, 1000, 0), hole(1003, 1003, 5), hole(1005, 1006, 6)}
	late, remaining := Late(passed, rows(1006, 7, 1003, 1, 1004))
	require.Equal(t, []int64{1, 7, 1003, 1006}, ids(late), "1004 is in no passed hole")
	require.Empty(t, cmp.Diff([]Hole{hole(2, 6, 0), hole(8, 1000, 0), hole(1005, 1005, 6)}, remaining))

	late, again := Late(remaining, rows(1006, 7, 1003, 1))
	require.Empty(t, late, "late once only")
	require.Equal(t, remaining, again)
}

func TestRegressed(t *testing.T) {
	t.Parallel()
	c := Cursor{W: 100, ReceivedAt: at(60)}
	for name, tc := range map[string]struct {
		received time.Time
		memory   Memory
		want     bool
	}{
		"the row taken over":              {at(60), Memory{Known: true, ReceivedAt: at(60), SameText: true}, false},
		"the row, with parts of a second": {at(60).Add(400 * time.Millisecond), Memory{Known: true, ReceivedAt: at(60), SameText: true}, false},
		"known id, another text":          {at(60), Memory{Known: true, ReceivedAt: at(60)}, true},
		"known id, text edited":           {at(60), Memory{Known: true, ReceivedAt: at(60), SameMessage: true}, false},
		"known id, sent again":            {at(61), Memory{Known: true, ReceivedAt: at(60), SameMessage: true}, true},
		"known id, another moment":        {at(61), Memory{Known: true, ReceivedAt: at(60), SameText: true}, true},
		"known id, date gone":             {time.Time{}, Memory{Known: true, ReceivedAt: at(60), SameText: true}, true},
		"known id that never had a date":  {time.Time{}, Memory{Known: true, SameText: true}, false},
		"unknown, older than W":           {at(59), Memory{}, false},
		"unknown, as old as W":            {at(60), Memory{}, false},
		"unknown, newer than W":           {at(61), Memory{}, true},
		"unknown, no date":                {time.Time{}, Memory{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, Regressed(c, Row{ID: 40, ReceivedAt: tc.received}, tc.memory))
		})
	}
	require.True(t, Edited(Row{ReceivedAt: at(60)}, Memory{Known: true, ReceivedAt: at(60), SameMessage: true}))
	require.False(t, Edited(Row{ReceivedAt: at(60)}, Memory{Known: true, ReceivedAt: at(60), SameText: true}))
	require.False(t, Edited(Row{ReceivedAt: at(61)}, Memory{Known: true, ReceivedAt: at(60), SameMessage: true}))
	require.False(t, Regressed(Cursor{W: 100}, Row{ID: 40, ReceivedAt: at(61)}, Memory{}), "W has no moment yet")
}

func TestPace(t *testing.T) {
	t.Parallel()
	p := Pace{Busy: 20 * time.Millisecond, Idle: time.Second}
	require.Zero(t, p.After(time.Second, true, true), "a full batch: at once")
	pause := p.After(0, true, false)
	var got []time.Duration
	for range 8 {
		got = append(got, pause)
		pause = p.After(pause, false, false)
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}, got)
	require.Equal(t, time.Second, p.After(0, false, false), "nothing known yet: idle")
}

func TestCutover(t *testing.T) {
	t.Parallel()
	for name, tc := range map[Cutover]struct {
		extent Extent
		want   int64
	}{
		"":      {Extent{5, 9}, 0},
		"zero":  {Extent{5, 9}, 0},
		"min":   {Extent{5, 9}, 4},
		"max":   {Extent{5, 9}, 9},
		"47110": {Extent{5, 9}, 47110},
	} {
		got, err := name.Watermark(tc.extent)
		require.NoError(t, err)
		require.Equal(t, tc.want, got, "%q", name)
	}
	got, err := CutoverMin.Watermark(Extent{})
	require.NoError(t, err)
	require.Zero(t, got, "an empty mailbox")
	for _, bad := range []Cutover{"-1", "MAX", "first", "1.5"} {
		_, err := bad.Watermark(Extent{})
		require.Error(t, err, "%q", bad)
	}
}

func TestStartAt(t *testing.T) {
	t.Parallel()
	require.Equal(t, Start{From: CutoverMax, W: 9}, StartAt(CutoverMax, 9, nil, 1, at(0)))
	require.Empty(t, StartAt("7", 7, rows(7), 1, at(0)).Missing, "what is below the first is not known")
	require.Equal(t, []Hole{hole(8, 8, 5), hole(11, 14, 5)}, StartAt("15", 15, rows(7, 9, 10, 15), 1, at(5)).Missing)
	require.Equal(t, []Hole{hole(11, 14, 5)}, StartAt("15", 15, rows(7, 9, 10, 15), 3, at(5)).Missing)
	dated := []Row{{ID: 7, ReceivedAt: at(3)}, {ID: 8, ReceivedAt: at(2)}, {ID: 9}}
	require.Equal(t, at(3), StartAt("9", 9, dated, 1, at(5)).ReceivedAt)
	require.Equal(t, Range{1, 5}, TailOf(5, 1))
	require.Equal(t, Range{7001, 10_000}, TailOf(10_000, 3))
}
