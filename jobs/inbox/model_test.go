package inbox

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naive keeps one entry an id where Cursor keeps ranges.
type naive struct {
	w       int64
	missing map[int64]time.Time // first sight
	passed  map[int64]bool
}

func (m *naive) round(seen []Row, step int64, limit int, now time.Time) (take []int64) {
	there := map[int64]bool{}
	last := m.w
	still := map[int64]time.Time{}
	for _, r := range seen {
		there[r.ID] = true
		if r.ID-last-1 >= step {
			for id := last + 1; id < r.ID; id++ {
				still[id] = now
				if t, ok := m.missing[id]; ok {
					still[id] = t
				}
			}
		}
		last = r.ID
	}
	for id, t := range m.missing {
		if id > last {
			still[id] = t
		}
	}
	m.missing = still
	for id := m.w + 1; ; id++ {
		since, isMissing := m.missing[id]
		switch {
		case isMissing && now.Sub(since) >= time.Duration(delay):
			m.passed[id] = true
			delete(m.missing, id)
		case isMissing:
			return take
		case there[id] && len(take) == limit:
			return take
		case there[id]:
			take = append(take, id)
		case id < last: // fewer than step are missing: no hole
			continue
		default:
			return take
		}
		m.w = id
	}
}

// TestModel drives Advance and Late with any sequence of commits, rollbacks, deletions, looks cut short and time, and
// compares each round with a model that keeps every id by itself.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			step    = rapid.Int64Range(1, 3).Draw(t, "step")
			c       = Cursor{Step: step}
			m       = &naive{missing: map[int64]time.Time{}, passed: map[int64]bool{}}
			mailbox = map[int64]bool{}
			open    []int64 // given out, not committed
			next    = rapid.Int64Range(1, 9).Draw(t, "first")
			now     = start
			passed  []Hole
			taken   = map[int64]bool{}
		)
		look := func(above int64) []Row {
			var out []Row
			for id := range mailbox {
				if id > above {
					out = append(out, Row{ID: id, ReceivedAt: now})
				}
			}
			slices.SortFunc(out, func(a, b Row) int { return int(a.ID - b.ID) })
			return out
		}
		round := func(t *rapid.T) {
			found := look(c.W)
			if cut := rapid.IntRange(0, 2*len(found)).Draw(t, "cut"); cut < len(found) {
				found = found[:cut]
			}
			limit := rapid.IntRange(1, 10).Draw(t, "limit")
			p := Advance(c, found, Limits{Take: limit, Delay: delay}, now)
			want := m.round(found, step, limit, now)
			if got := ids(p.Take); !slices.Equal(got, want) || p.Cursor.W != m.w {
				t.Fatalf("took %v to W=%d, the model %v to W=%d", got, p.Cursor.W, want, m.w)
			}
			for _, r := range p.Take {
				if taken[r.ID] {
					t.Fatalf("%d taken twice", r.ID)
				}
				taken[r.ID] = true
			}
			c, passed = p.Cursor, append(passed, p.Released...)
			checkHoles(t, c, m)
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) { open = append(open, next); next += step },
			"commit": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nothing open")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				mailbox[open[i]] = true
				open = slices.Delete(open, i, i+1)
			},
			"roll back": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nothing open")
				}
				open = slices.Delete(open, 0, 1)
			},
			"owner deletes": func(t *rapid.T) {
				if len(mailbox) == 0 {
					t.Skip("empty")
				}
				delete(mailbox, rapid.SampledFrom(ids(look(0))).Draw(t, "which"))
			},
			"wait":  func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second) },
			"round": round,
			"look back": func(t *rapid.T) {
				var found []Row
				for id := range mailbox {
					if id <= c.W && slices.ContainsFunc(passed, func(h Hole) bool { return h.Contains(id) }) {
						found = append(found, Row{ID: id})
					}
				}
				var late []Row
				late, passed = Late(passed, found)
				if len(late) != len(found) {
					t.Fatalf("%d rows in passed holes, %d told", len(found), len(late))
				}
				for _, r := range late {
					if taken[r.ID] || !m.passed[r.ID] {
						t.Fatalf("%d told late: taken %v, passed %v", r.ID, taken[r.ID], m.passed[r.ID])
					}
					taken[r.ID] = true
				}
			},
		})
	})
}

func checkHoles(t *rapid.T, c Cursor, m *naive) {
	end, n := c.W, 0
	for _, h := range c.Holes {
		if h.First <= end || h.Last < h.First {
			t.Fatalf("holes overlap, are out of order or lie at or below W=%d: %v", c.W, c.Holes)
		}
		end = h.Last
		for id := h.First; id <= h.Last; id++ {
			n++
			if since, ok := m.missing[id]; !ok || !since.Equal(h.FirstSeen) {
				t.Fatalf("%d missing since %v, the model says %v (%v)", id, h.FirstSeen, since, ok)
			}
		}
	}
	if n != len(m.missing) {
		t.Fatalf("%d ids missing, the model says %d", n, len(m.missing))
	}
}
