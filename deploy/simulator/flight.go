package simulator

import (
	"fmt"
	"time"
)

// flight is what the airport database knows about one flight now.
type flight struct {
	id      int64
	airline string
	sub     string
	n       int
	number  string // carrier code and n
	arrives bool
	sodt    time.Time
	flty    string
	route   []station // the other stations, in the order of flying
	*turn             // the aircraft's visit it is part of
	link    *flight   // the other flight of the same aircraft
	master  *flight   // for a code-share child
	shares  []*flight // for a master

	gates, counters, belts, chutes []slot
	remark                         string
	vips                           int
	until                          time.Time // nothing is heard of it afterwards; zero: no end
	gone                           bool      // deleted
}

// turn is an aircraft's visit, shared by the flights that bring it and take it away.
type turn struct {
	arrival, departure *flight // one may be nil
	craft              aircraft
	reno               string
	stays              []stay
	ramp, pax, tech    int
}

// stay is a planned occupation of a stand.
type stay struct {
	stand    stand
	from, to time.Time
}

// slot is a gate, counter, belt or chute of a flight.
type slot struct {
	code, class  string
	from, to     time.Time // planned
	began, ended time.Time // actual; zero: not yet
}

// flin is D, R or I, as the station before or after says.
func (f *flight) flin() string { return f.route[0].flin }

// indicator is what the D-or-I elements of lists say.
func (f *flight) indicator() string {
	if f.flin() == "D" {
		return "D"
	}
	return "I"
}

func (f *flight) terminal() string {
	if f.flin() == "D" {
		return "T2"
	}
	return "T1"
}

func (f *flight) mvin() string {
	if f.arrives {
		return "A"
	}
	return "D"
}

// ffid is the readable name of dictionary 7.
func (f *flight) ffid() string {
	return fmt.Sprintf("%s-%s-%s-%s-%s", f.airline, f.number, f.mvin(), wireTime(f.sodt), f.flin())
}

// stand is where the aircraft stands first, or last when f takes it away.
func (f *flight) stand() stand {
	if f.arrives {
		return f.stays[0].stand
	}
	return f.stays[len(f.stays)-1].stand
}

// leg is how long f flies from or to its nearest station.
func (f *flight) leg() time.Duration { return minutes(f.route[0].fly) }

// linkOrNone are the elements of a TAOP: the link, or three empty ones that break it.
func (f *flight) linkOrNone() []element {
	if f.link == nil {
		return []element{el("TAOP", ""), el("TAFL", ""), el("TAID", "")}
	}
	return f.linked()
}

// heard says whether anything is still said about f at t.
func (f *flight) heard(t time.Time) bool { return !f.gone && (f.until.IsZero() || !t.After(f.until)) }
