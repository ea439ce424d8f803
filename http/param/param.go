// Package param reads query parameters and reports every bad one at once. A parameter nobody asks for
// is left alone, unless NoOthers refuses it.
package param

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"msgexchange/http/problem"
)

// Query reads the parameters of one request; Err says what was wrong with them.
type Query struct {
	values url.Values
	asked  map[string]bool
	bad    []string
}

// Of starts reading values.
func Of(values url.Values) *Query { return &Query{values: values, asked: map[string]bool{}} }

// Err is nil or a BAD_REQUEST that names every bad parameter.
func (q *Query) Err() error {
	if len(q.bad) == 0 {
		return nil
	}
	return problem.New(problem.BadRequest, strings.Join(q.bad, "; "))
}

func (q *Query) refuse(name, format string, args ...any) {
	q.bad = append(q.bad, name+" "+fmt.Sprintf(format, args...))
}

// NoOthers refuses every parameter that was not asked for before: a filter with a slip of the pen in its name would else show
// everything and be taken for an answer.
func (q *Query) NoOthers() {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !q.asked[name] {
			q.refuse(strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], "?"), "is not known here; there are %s",
				strings.Join(slices.Sorted(maps.Keys(q.asked)), ", "))
		}
	}
}

// maxNameBytes bounds what is repeated of a parameter's name.
const maxNameBytes = 40

// Text is the parameter as it is; empty when it is missing.
func (q *Query) Text(name string) string {
	const maxTextBytes = 200
	q.asked[name] = true
	if len(q.values[name]) > 1 { // the first would be answered, and taken for an answer to both
		q.refuse(name, "is given %d times", len(q.values[name]))
		return ""
	}
	s := strings.TrimSpace(q.values.Get(name))
	if len(s) > maxTextBytes || strings.ContainsRune(s, 0) || strings.ToValidUTF8(s, "") != s {
		q.refuse(name, "is no text of at most %d bytes", maxTextBytes)
		return ""
	}
	return s
}

// Limit is a number of rows from 1 to most; def when it is missing.
func (q *Query) Limit(def, most int) int {
	s := q.Text("limit")
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		q.refuse("limit", "must be a number from 1 to %d", most)
		return def
	}
	return n
}

// ID is a positive number; 0 when it is missing.
func (q *Query) ID(name string) int64 {
	s := q.Text(name)
	if s == "" {
		return 0
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		q.refuse(name, "must be a positive number")
		return 0
	}
	return id
}

// Time is a moment, RFC 3339; the zero time when it is missing. A "+" that came as a space is understood.
func (q *Query) Time(name string) time.Time {
	s := q.Text(name)
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, strings.ReplaceAll(s, " ", "+"))
	if err != nil {
		q.refuse(name, "must be a time like 2026-11-30T08:00:00+08:00")
	}
	return at
}

// Between is the parameters from, inclusive, and to, exclusive, as Time reads them. No time at all lies between a to that is not
// later and its from: an empty answer would say that nothing happened.
func (q *Query) Between() (from, to time.Time) {
	from, to = q.Time("from"), q.Time("to")
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		q.refuse("from", "must be before to")
	}
	return from, to
}

// Day is a date, "2026-11-30"; empty when it is missing.
func (q *Query) Day(name string) string {
	s := q.Text(name)
	if s == "" {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		q.refuse(name, "must be a day like 2026-11-30")
		return ""
	}
	return s
}

// Word is one of a closed set, in any case; the zero value when it is missing.
func Word[T ~string](q *Query, name string, allowed []T) T {
	s := q.Text(name)
	if s == "" {
		return ""
	}
	for _, a := range allowed {
		if strings.EqualFold(s, string(a)) {
			return a
		}
	}
	q.refuse(name, "must be one of %v", allowed)
	return ""
}

// Cursor reads what Mark wrote: the place after which the page begins; 0, 0 and false when it is missing.
func (q *Query) Cursor() (major, minor int64, ok bool) {
	s := q.Text("after")
	if s == "" {
		return 0, 0, false
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d.%d", &major, &minor)
	}
	if err != nil || Mark(major, minor) != s {
		q.refuse("after", "is no cursor of this service")
		return 0, 0, false
	}
	return major, minor, true
}

// Mark is a cursor: opaque to callers, safe in a URL.
func Mark(major, minor int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", major, minor))
}

// Place is where a row stands in a list that goes by time: the cursor after it begins with the next one.
type Place struct {
	At         time.Time // to the microsecond, as PostgreSQL keeps it
	Generation int32
	ID         int64
}

// Mark is the cursor that begins after p: opaque to callers, safe in a URL.
func (p Place) Mark() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%d", p.At.UnixMicro(), p.Generation, p.ID))
}

// Place reads what Place.Mark wrote; the zero Place when it is missing.
func (q *Query) Place() Place {
	s := q.Text("after")
	if s == "" {
		return Place{}
	}
	var p Place
	var micros int64
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d.%d.%d", &micros, &p.Generation, &p.ID)
	}
	p.At = time.UnixMicro(micros).UTC()
	if err != nil || p.Mark() != s {
		q.refuse("after", "is no cursor of this service")
		return Place{}
	}
	return p
}

// Choice is true or false; nil when it is missing.
func (q *Query) Choice(name string) *bool {
	s := q.Text(name)
	if s == "" {
		return nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		q.refuse(name, "must be true or false")
	}
	return &b
}

// Flag is Choice, and false when it is missing.
func (q *Query) Flag(name string) bool {
	b := q.Choice(name)
	return b != nil && *b
}

// Code is a name of the wire, in any case: it comes back in upper case.
func (q *Query) Code(name string) string { return strings.ToUpper(q.Text(name)) }

// PathPosition reads a message that stands in the path: its id, or "generation:id" of ids that have started again, as flights and
// records write it. Without a generation, nil.
func PathPosition(s string) (id int64, generation *int32, err error) {
	gen, rest, both := strings.Cut(s, ":")
	if !both {
		id, err = PathID(s)
		return id, nil, err
	}
	n, err := strconv.ParseInt(gen, 10, 32)
	if err != nil || n < 0 {
		return 0, nil, problem.New(problem.BadRequest, "want an id, or generation:id")
	}
	number := int32(n)
	id, err = PathID(rest)
	return id, &number, err
}

// PathID reads an id that stands in the path.
func PathID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, problem.New(problem.BadRequest, "the id must be a positive number")
	}
	return id, nil
}
