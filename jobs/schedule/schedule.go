// Package schedule reads cron lines of five fields and says when they are due, by the airport's clock (contract §3).
//
// A line for a time of day is due once on each of its days, also on those on which the clock is changed: a time that the
// clock skips is taken at the hour it jumps to, one that comes twice is taken the first time.
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cron is a line that has been read. Safe for concurrent use.
type Cron struct {
	minutes, hours, days, months, weekdays []bool
	// anyDay and anyWeekday: the field began with a star. When neither did, one of the two is enough, as in every cron.
	anyDay, anyWeekday bool
}

// field is one column of a line: its name, its range, and names for its values from the lowest on.
type field struct {
	name     string
	from, to int
	names    []string
}

func fields() []field {
	return []field{
		{name: "minute", from: 0, to: 59},
		{name: "hour", from: 0, to: 23},
		{name: "day of month", from: 1, to: 31},
		{name: "month", from: 1, to: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
		{name: "day of week", from: 0, to: 7, names: strings.Fields("SUN MON TUE WED THU FRI SAT")},
	}
}

// Parse reads "minute hour day-of-month month day-of-week": stars, numbers, ranges a-b, steps /n, lists with commas, and
// the first three letters of months and days in any case; Sunday is 0 or 7. It reports every field it cannot read, and
// refuses a line that never comes.
func Parse(line string) (Cron, error) {
	texts, columns := strings.Fields(line), fields()
	if len(texts) != len(columns) {
		return Cron{}, fmt.Errorf("%q is no cron line of five fields", line)
	}
	sets, errs := make([][]bool, len(columns)), make([]error, len(columns))
	for i, f := range columns {
		sets[i], errs[i] = f.parse(texts[i])
	}
	if err := errors.Join(errs...); err != nil {
		return Cron{}, err
	}
	weekdays := sets[4]
	weekdays[0] = weekdays[0] || weekdays[7]
	c := Cron{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: weekdays,
		anyDay: strings.HasPrefix(texts[2], "*"), anyWeekday: strings.HasPrefix(texts[4], "*"),
	}
	if c.Next(time.Unix(0, 0), time.UTC).IsZero() {
		return Cron{}, fmt.Errorf("%q never comes", line)
	}
	return c, nil
}

func (f field) parse(text string) ([]bool, error) {
	set := make([]bool, f.to+1)
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, step, err := f.span(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", f.name, part, err)
		}
		for v := lo; v <= hi; v += step {
			set[v] = true
		}
	}
	return set, nil
}

// span reads one part of a list: *, a, a-b, each with /n or without; a/n goes to the end.
func (f field) span(part string) (lo, hi, step int, err error) {
	span, every, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		if step, err = strconv.Atoi(every); err != nil || step < 1 || step > f.to {
			return 0, 0, 0, fmt.Errorf("%q is no step", every)
		}
	}
	if span == "*" {
		return f.from, f.to, step, nil
	}
	first, last, ranged := strings.Cut(span, "-")
	if lo, err = f.value(first); err != nil {
		return 0, 0, 0, err
	}
	switch {
	case ranged:
		hi, err = f.value(last)
	case stepped:
		hi = f.to
	default:
		hi = lo
	}
	if err == nil && hi < lo {
		err = errors.New("the range runs backwards")
	}
	return lo, hi, step, err
}

func (f field) value(s string) (int, error) {
	if i := slices.Index(f.names, strings.ToUpper(s)); i >= 0 {
		return f.from + i, nil
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < f.from || v > f.to {
		return 0, fmt.Errorf("%q is not within %d … %d", s, f.from, f.to)
	}
	return v, nil
}

// horizon is how far ahead is looked: 29 February may be eight years away.
const horizon = 9 * 366

// Next is the first moment after at when the line is due on clocks of zone; the zero time when it never is.
func (c Cron) Next(at time.Time, zone *time.Location) time.Time {
	y, m, d := at.In(zone).Date()
	// From the day before: what the clock skipped late that day may be due today.
	for day := time.Date(y, m, d-1, 0, 0, 0, 0, time.UTC); day.Before(at.AddDate(0, 0, horizon)); day = day.AddDate(0, 0, 1) {
		if !c.on(day) {
			continue
		}
		if due := c.firstOf(day, at, zone); !due.IsZero() {
			return due
		}
	}
	return time.Time{}
}

// on says that the line has times on that day.
func (c Cron) on(day time.Time) bool {
	if !c.months[day.Month()] {
		return false
	}
	byDay, byWeekday := c.days[day.Day()], c.weekdays[day.Weekday()]
	if !c.anyDay && !c.anyWeekday {
		return byDay || byWeekday
	}
	return byDay && byWeekday
}

// firstOf is the earliest of the day's moments after at; zero when there is none.
func (c Cron) firstOf(day, at time.Time, zone *time.Location) (first time.Time) {
	for h, yes := range c.hours {
		if !yes {
			continue
		}
		for m, yes := range c.minutes {
			if !yes {
				continue
			}
			due := moment(day.Add(time.Duration(h)*time.Hour+time.Duration(m)*time.Minute), zone)
			if due.After(at) && (first.IsZero() || due.Before(first)) {
				first = due
			}
		}
	}
	return first
}

// moment is when clocks of zone first show the time that clock shows in UTC. A time they skip is read on the clock as it
// was before the jump. time.Date does not say which it takes.
func moment(clock time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour // no zone changes twice within it
	before, after := offset(clock.Add(-day), zone), offset(clock.Add(day), zone)
	early, late := clock.Add(-max(before, after)), clock.Add(-min(before, after))
	for _, t := range []time.Time{early, late} {
		if offset(t, zone) == clock.Sub(t) {
			return t.In(zone)
		}
	}
	return clock.Add(-before).In(zone)
}

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
