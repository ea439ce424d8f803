package compare

import (
	"encoding/json"
	"fmt"
	"io"
)

// maxLines is how many differences are written out as text; the JSON report has all of them.
const maxLines = 200

// Print writes the report for people.
func Print(w io.Writer, r Report) error {
	p := printer{w: w}
	p.line("%d records on the left, %d on the right, %d the same", r.Left, r.Right, r.Same)
	p.line("%d differences explained, %d unexplained", len(r.Explained), len(r.Unexplained))
	for i, d := range r.Unexplained {
		if i == maxLines {
			p.line("  … and %d more; --json has them all", len(r.Unexplained)-i)
			break
		}
		p.line("  %s", d)
	}
	byReason := map[string]int{}
	for _, d := range r.Explained {
		byReason[d.Why]++
	}
	for _, d := range r.Explained {
		if n := byReason[d.Why]; n > 0 {
			p.line("  explained %d times: %s", n, d.Why)
			byReason[d.Why] = 0
		}
	}
	for _, t := range r.Unused {
		p.line("  tolerance without use, take it out: %s (%s)", t.Field, t.Why)
	}
	return p.err
}

// String is the difference in one line.
func (d Difference) String() string {
	switch {
	case d.Path == "":
		return fmt.Sprintf("%s: only on the %s", d.ID, d.On)
	case d.On == Left:
		return fmt.Sprintf("%s %s: %s, missing on the right", d.ID, d.Path, text(d.Left))
	case d.On == Right:
		return fmt.Sprintf("%s %s: missing on the left, %s", d.ID, d.Path, text(d.Right))
	}
	return fmt.Sprintf("%s %s: %s, %s", d.ID, d.Path, text(d.Left), text(d.Right))
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
