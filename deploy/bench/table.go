package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// table is what was measured.
type table struct{ lines []line }

// line is one measured number.
type line struct {
	what, is, goal string
	verdict        string // "met", "missed", or empty where there is no goal
}

// limit adds a number that says what the machine can do.
func (t *table) limit(what, format string, args ...any) {
	t.lines = append(t.lines, line{what: what, is: fmt.Sprintf(format, args...)})
}

// goal adds a number with the goal it is held against.
func (t *table) goal(what string, met bool, goal, format string, args ...any) {
	l := line{what, fmt.Sprintf(format, args...), goal, "met"}
	if !met {
		l.verdict = "MISSED"
	}
	t.lines = append(t.lines, l)
}

func (t *table) print(out io.Writer) {
	width := [3]int{}
	for _, l := range t.lines {
		for i, s := range []string{l.what, l.is, l.goal} {
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	for _, l := range t.lines {
		cells := make([]string, 3)
		for i, s := range []string{l.what, l.is, l.goal} {
			cells[i] = s + strings.Repeat(" ", width[i]-len([]rune(s)))
		}
		fmt.Fprintln(out, strings.TrimRight(strings.Join(append(cells, l.verdict), "  "), " "))
	}
}

// median of some numbers; 0 of none.
func median[T float64 | time.Duration](all []T) T { return quantile(all, 0.5) }

// quantile gives the smallest number that so large a part of all does not exceed.
func quantile[T float64 | time.Duration](all []T, part float64) T {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}
