// Package doctor looks at everything a process depends on and says what is wrong and what to do about it (contract §2, §8.6,
// §8.7). The command doctor shows all of it; serve asks the questions marked AtStart and refuses to start where going on
// would do harm. What is merely away never refuses a start: the process waits for it (contract §8.9). It changes nothing.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// Verdict is how something is.
type Verdict string

// The closed set of verdicts, best first.
const (
	OK      Verdict = "ok"
	Skipped Verdict = "skipped" // not looked at, because what comes before it failed
	Warn    Verdict = "warn"    // works, but not as it should
	Fail    Verdict = "FAIL"    // does not work; the process waits for it to be mended
	Refuse  Verdict = "REFUSE"  // would do harm: serve does not start
)

// AllVerdicts lists the verdicts, best first.
func AllVerdicts() []Verdict { return []Verdict{OK, Skipped, Warn, Fail, Refuse} }

// Finding is the answer to one question.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`        // what there is, without secrets
	Do      string  `json:"do,omitempty"` // what to do about it
}

// Check is one question.
type Check struct {
	Name    string
	AtStart bool // serve asks it too
	Look    func(ctx context.Context) Finding
}

// Section is what is asked of one system. Its first check says whether it can be asked at all; while it fails, the rest is
// skipped.
type Section []Check

// Examine asks all questions, or only those of a start: the sections side by side, each within the time given. The findings
// are in the order of the questions.
func Examine(ctx context.Context, sections []Section, atStart bool, within time.Duration) []Finding {
	answers := make([][]Finding, len(sections))
	var g errgroup.Group
	for i, s := range sections {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			answers[i] = s.examine(ctx, atStart)
			return nil
		})
	}
	_ = g.Wait() // nobody gives one
	return slices.Concat(answers...)
}

func (s Section) examine(ctx context.Context, atStart bool) []Finding {
	var out []Finding
	for i, c := range s {
		if atStart && !c.AtStart {
			continue
		}
		f := c.Look(ctx)
		f.Check = c.Name
		out = append(out, f)
		if i == 0 && (f.Verdict == Fail || f.Verdict == Refuse) {
			for _, rest := range s[1:] {
				if !atStart || rest.AtStart {
					out = append(out, Finding{Check: rest.Name, Verdict: Skipped, Found: fmt.Sprintf("not looked at: %s is %s", c.Name, f.Verdict)})
				}
			}
			return out
		}
	}
	return out
}

// Worst is the worst verdict there is.
func Worst(findings []Finding) Verdict {
	rank := func(f Finding) int { return slices.Index(AllVerdicts(), f.Verdict) }
	if len(findings) == 0 {
		return OK
	}
	return slices.MaxFunc(findings, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) }).Verdict
}

// Print writes the findings as a table; below a line that is not well stands what to do.
func Print(w io.Writer, findings []Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Verdict, f.Check, oneLine(f.Found)) // Flush has the error
		if f.Do != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", oneLine(f.Do))
		}
	}
	return table.Flush()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func well(format string, args ...any) Finding {
	return Finding{Verdict: OK, Found: fmt.Sprintf(format, args...)}
}

func bad(v Verdict, do, format string, args ...any) Finding {
	return Finding{Verdict: v, Do: do, Found: fmt.Sprintf(format, args...)}
}
