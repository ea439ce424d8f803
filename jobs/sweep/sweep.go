// Package sweep decides which flights leave the live set for the history (design §10; decision 0016). Pure: the flights and
// the moment come in, the flights to go come out. It never says that a flight goes of which another that stays has need.
package sweep

import (
	"time"

	"msgexchange/jobs/flight"
)

// Rule is why a flight goes; kept in the history under this name.
type Rule string

// The closed set of rules, in the order in which they are asked: the first that holds is the reason.
const (
	Deleted   Rule = "deleted"   // a message deleted it
	Cancelled Rule = "cancelled" // it is cancelled
	Departed  Rule = "departed"  // it has left and did not come back
	Arrived   Rule = "arrived"   // it has come
	Silent    Rule = "silent"    // its time is over and nobody speaks of it any more
)

// AllRules lists the rules.
func AllRules() []Rule { return []Rule{Deleted, Cancelled, Departed, Arrived, Silent} }

// Policy is what the site wants.
type Policy struct {
	// Days is how many operation days back a flight stays, whatever the rules say.
	Days int
	// After is how long a rule must have held; a rule that is missing or 0 is off.
	After map[Rule]time.Duration
	// Zone and CutoffHour are the operation day's; Zone must not be nil.
	Zone       *time.Location
	CutoffHour int
}

// Before is the first operation day that stays at that moment: flights of earlier ones may go.
func (p Policy) Before(at time.Time) flight.Day {
	return flight.DayOf(at.In(p.Zone).AddDate(0, 0, -p.Days), p.Zone, p.CutoffHour)
}

// Holds gives the rule by which f alone could go.
func (p Policy) Holds(f *flight.Flight, at time.Time) (Rule, bool) {
	if f.OperationDay >= p.Before(at) {
		return "", false
	}
	for _, rule := range AllRules() {
		since := began(rule, f)
		if after := p.After[rule]; after > 0 && !since.IsZero() && at.Sub(since) >= after {
			return rule, true
		}
	}
	return "", false
}

// began is since when a rule holds for f, zero when it does not.
func began(rule Rule, f *flight.Flight) time.Time {
	if f.Live() == (rule == Deleted) {
		return time.Time{}
	}
	actual := moment(f, "actt")
	switch rule {
	case Deleted:
		return f.DeletedAt
	case Cancelled: // until its hour has come it may be reinstated
		if at := moment(f, "cncl"); !at.IsZero() {
			return later(at, moment(f, "sodt"))
		}
	case Departed:
		if _, returned := f.Scalars["fret.reid"]; is(f, "D") && !returned {
			return actual
		}
	case Arrived:
		if is(f, "A") {
			return actual
		}
	case Silent:
		return later(f.UpdatedAt, moment(f, "sodt"), moment(f, "estt"), actual)
	}
	return time.Time{}
}

func is(f *flight.Flight, mvin string) bool { return f.Scalars["mvin"].Str == mvin }

// moment is a time of the flight, zero when it has none.
func moment(f *flight.Flight, name string) time.Time {
	v, ok := f.Scalars[name]
	if !ok {
		return time.Time{}
	}
	return v.Time()
}

func later(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Go is a flight that leaves, and why.
type Go struct {
	Flight *flight.Flight
	Rule   Rule
}

// Choose says which of the candidates go at that moment, in their order. v must hold, next to them, their masters and
// children all the way (flight.View) and the flights they turn around to (Partners). Of a code share all live flights go
// together or none: a master's list of children, and what is told through a master, stay true. A flight whose turnaround
// partner lives and has reason to stay waits for it: an aircraft that is parked for a week has an arrival.
func Choose(p Policy, candidates []int64, v flight.View, at time.Time) []Go {
	var all []Go
	for _, flid := range candidates {
		f := v.Flight(flid)
		if f == nil || f.Swept {
			continue
		}
		rule, due := p.Holds(f, at)
		if due && (!f.Live() || p.family(f, v, at)) {
			all = append(all, Go{f, rule})
		}
	}
	return all
}

// family says that every live flight of f's code share may go.
func (p Policy) family(f *flight.Flight, v flight.View, at time.Time) bool {
	seen := map[int64]bool{}
	line := []*flight.Flight{f}
	for len(line) > 0 {
		f, line = line[0], line[1:]
		if !f.Live() || seen[f.FLID] {
			continue
		}
		seen[f.FLID] = true
		if _, due := p.Holds(f, at); !due || p.awaited(f, v, at) {
			return false
		}
		line = append(append(line, v.Flight(f.Master())), v.Children(f.FLID)...)
	}
	return true
}

// awaited says that the flight f turns around to lives and stays.
func (p Policy) awaited(f *flight.Flight, v flight.View, at time.Time) bool {
	partner := v.Flight(Partner(f))
	if !partner.Live() {
		return false
	}
	_, due := p.Holds(partner, at)
	return !due
}

// Partner is the flight that f turns around to, 0 when it names none.
func Partner(f *flight.Flight) int64 {
	if taid := f.Scalars["taid"].Num; taid != f.FLID {
		return taid
	}
	return 0
}
