package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// table is what was measured.
type table struct{ lines []line }

// line is one measured number.
type line struct {
	what, is, goal string
	verdict        string // "met", "MISSED", or empty where there is no goal
	load           string // of the machine when it was measured
}

// limit adds a number that says what the machine can do.
func (t *table) limit(what, format string, args ...any) {
	t.lines = append(t.lines, line{what: what, is: fmt.Sprintf(format, args...), load: load()})
}

// goal adds a number with the goal it is held against.
func (t *table) goal(what string, met bool, goal, format string, args ...any) {
	t.limit(what, format, args...)
	l := &t.lines[len(t.lines)-1]
	l.goal, l.verdict = goal, "met"
	if !met {
		l.verdict = missed
	}
}

const missed = "MISSED"

// load is the machine's average of the last minute: how many wanted to run at a time, we ourselves among them.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// print shows the table and says how many goals were missed.
func (t *table) print(out io.Writer) (misses int) {
	all := append([]line{{"what", "measured", "goal", "", "load"}}, t.lines...)
	cells := func(l line) []string { return []string{l.what, l.is, l.goal, l.verdict, l.load} }
	var width [5]int
	for _, l := range all {
		for i, s := range cells(l) {
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	for _, l := range all {
		var b strings.Builder
		for i, s := range cells(l) {
			b.WriteString(s + strings.Repeat(" ", width[i]-len([]rune(s))+2))
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
		if l.verdict == missed {
			misses++
		}
	}
	return misses
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
