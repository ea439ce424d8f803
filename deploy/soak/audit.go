package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"msgexchange/db/store"
	"msgexchange/deploy/systemtest/rig"
)

// maxProblems is how many of one kind are listed; the rest is counted.
const maxProblems = 20

// auditor compares what is with what must be.
type auditor struct {
	world  *rig.World
	store  *store.Store
	replay *replay
	report *report

	found map[string]int // problems by kind
}

// audit compares everything, record for record. Its error says why it could not.
func audit(ctx context.Context, w *rig.World, r *report) error {
	a := &auditor{world: w, store: store.New(w.Zone), replay: newReplay(w.Zone), report: r, found: map[string]int{}}
	r.counts = map[string]int{}
	for _, check := range []func(context.Context) error{a.messages, a.flights, a.history, a.events} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	for kind, n := range a.found {
		if n > maxProblems {
			r.problems = append(r.problems, fmt.Sprintf("%s: %d more", kind, n-maxProblems))
		}
	}
	return nil
}

// differ notes a difference.
func (a *auditor) differ(kind, format string, args ...any) {
	if a.found[kind]++; a.found[kind] <= maxProblems {
		a.report.problems = append(a.report.problems, kind+": "+fmt.Sprintf(format, args...))
	}
}

// must notes a difference unless ok.
func (a *auditor) must(ok bool, kind, format string, args ...any) {
	if !ok {
		a.differ(kind, format, args...)
	}
}

func (a *auditor) count(what string, n int) { a.report.counts[what] += n }

// print tells people; it says whether all is well.
func (r *report) print(out io.Writer, o options) bool {
	list := func(of map[string]int) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
		}
		return strings.Join(parts, ", ")
	}
	fmt.Fprintf(out, "faults:   %s\ncompared: %s\n", list(r.faults), list(r.counts))
	if len(r.problems) == 0 {
		fmt.Fprintf(out, "zero differences (seed %d)\n", o.Seed)
		return true
	}
	fmt.Fprintf(out, "%s%d differences (seed %d):\n", r.logs, len(r.problems), o.Seed)
	for _, p := range r.problems {
		fmt.Fprintln(out, "  "+p)
	}
	return false
}
