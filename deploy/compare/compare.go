// Package compare holds two accounts of the same flights or changes against each other, field by field: a shadow beside the
// system it is to replace, or a dump of yesterday (contract §8.30, docs/cutover.md). What differs is either explained by a
// tolerance somebody wrote down with a reason, or it is a difference that stands in the way of a cut-over.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Record is one flight or one change, as decoded from JSON.
type Record = map[string]any

// Set holds records by what identifies them: the FLID of a flight, message id and FLID of a change.
type Set map[string]Record

// Where says on which side a record or a value is.
type Where string

// The closed set of places.
const (
	Both  Where = "both"
	Left  Where = "left"
	Right Where = "right"
)

// AllWheres lists the places.
func AllWheres() []Where { return []Where{Both, Left, Right} }

// Difference is one thing that is not the same.
type Difference struct {
	ID    string `json:"id"`
	Path  string `json:"path,omitempty"` // psdt[0].psno; empty: the whole record is on one side only
	On    Where  `json:"on"`             // where there is a value: both, left or right
	Left  any    `json:"left,omitempty"`
	Right any    `json:"right,omitempty"`
	Why   string `json:"why,omitempty"` // the tolerance that explains it
}

// Report is the result of a comparison.
type Report struct {
	Left        int          `json:"left"`  // records there
	Right       int          `json:"right"` // records there
	Same        int          `json:"same"`  // records without any difference
	Unexplained []Difference `json:"unexplained"`
	Explained   []Difference `json:"explained"`
	Unused      []Tolerance  `json:"unusedTolerances"` // explain nothing any more
}

// Compare finds every difference and sorts it by whether a tolerance explains it.
func Compare(left, right Set, tolerances []Tolerance) Report {
	r := Report{Left: len(left), Right: len(right), Unexplained: []Difference{}, Explained: []Difference{}, Unused: []Tolerance{}}
	used := make([]bool, len(tolerances))
	ids := maps.Clone(left)
	maps.Copy(ids, right)
	for _, id := range slices.SortedFunc(maps.Keys(ids), byNumber) {
		found := records(id, left, right)
		if len(found) == 0 {
			r.Same++
		}
		for _, d := range found {
			i := slices.IndexFunc(tolerances, func(t Tolerance) bool { return t.explains(d) })
			if i < 0 {
				r.Unexplained = append(r.Unexplained, d)
				continue
			}
			used[i] = true
			d.Why = tolerances[i].Why
			r.Explained = append(r.Explained, d)
		}
	}
	for i, t := range tolerances {
		if !used[i] {
			r.Unused = append(r.Unused, t)
		}
	}
	return r
}

// byNumber sorts ids as people do: 9 before 10.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

func records(id string, left, right Set) []Difference {
	l, inLeft := left[id]
	r, inRight := right[id]
	switch {
	case !inRight:
		return []Difference{{ID: id, On: Left}}
	case !inLeft:
		return []Difference{{ID: id, On: Right}}
	}
	var out []Difference
	values("", l, r, func(d Difference) {
		d.ID = id
		out = append(out, d)
	})
	return out
}

// values walks two JSON values side by side and tells the innermost places where they differ.
func values(path string, left, right any, tell func(Difference)) {
	switch l := left.(type) {
	case map[string]any:
		if r, ok := right.(map[string]any); ok {
			objects(path, l, r, tell)
			return
		}
	case []any:
		if r, ok := right.([]any); ok && len(l) == len(r) {
			for i := range l {
				values(fmt.Sprintf("%s[%d]", path, i), l[i], r[i], tell)
			}
			return
		}
	}
	if !equal(left, right) {
		tell(Difference{Path: path, On: Both, Left: left, Right: right})
	}
}

func objects(path string, left, right map[string]any, tell func(Difference)) {
	names := maps.Clone(left)
	maps.Copy(names, right)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		below := strings.TrimPrefix(path+"."+name, ".")
		l, inLeft := left[name]
		r, inRight := right[name]
		switch {
		case !inRight:
			tell(Difference{Path: below, On: Left, Left: l})
		case !inLeft:
			tell(Difference{Path: below, On: Right, Right: r})
		default:
			values(below, l, r, tell)
		}
	}
}

// equal takes the same moment in two zones for the same.
func equal(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	l, isText := a.(string)
	r, alsoText := b.(string)
	if !isText || !alsoText {
		return false
	}
	at, err := time.Parse(time.RFC3339, l)
	other, err2 := time.Parse(time.RFC3339, r)
	return err == nil && err2 == nil && at.Equal(other)
}

// Lasting keeps of a second look what the first one found too, with the same values: between two running systems the rest
// was only on its way.
func Lasting(first, second Report) Report {
	key := func(d Difference) string {
		return fmt.Sprint(d.ID, "\x00", d.Path, "\x00", d.On, "\x00", d.Left, "\x00", d.Right)
	}
	before := map[string]bool{}
	for _, d := range first.Unexplained {
		before[key(d)] = true
	}
	second.Unexplained = slices.DeleteFunc(second.Unexplained, func(d Difference) bool { return !before[key(d)] })
	return second
}
