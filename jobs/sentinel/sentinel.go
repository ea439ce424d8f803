// Package sentinel compares the state of a flight with everything that should agree with it (design §10): what its readers
// were told last, what is written about how it came about, its code-share links, and the message that touched it last. Pure.
// A difference is a defect of ours, an edit by hand or a backup put back; nothing is ever mended here.
package sentinel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// About is what a flight's state does not agree with.
type About string

// The closed set.
const (
	AboutState   About = "state"   // itself: it cannot be read
	AboutEvent   About = "event"   // the newest event on schd
	AboutHistory About = "history" // the newest row of what was done to it
	AboutLinks   About = "links"   // the live flights that name it as their master
	AboutMessage About = "message" // the message that touched it last
	AboutMark    About = "mark"    // that message's processed mark
)

// AllAbouts lists them.
func AllAbouts() []About {
	return []About{AboutState, AboutEvent, AboutHistory, AboutLinks, AboutMessage, AboutMark}
}

// Evidence is one flight and what should agree with it, all of the same moment.
type Evidence struct {
	FLID       int64
	Unreadable string         // why the flight cannot be read; then nothing else counts
	Flight     *flight.Flight // also a deleted one
	Doc        json.RawMessage
	Event      *Event   // the newest on schd, nil when there is none any more
	Changed    int64    // the version after the newest row of its history; 0 when there is none
	Children   []string // FLNO of the live flights that name it as their master, in no order
	Message    *Message // the one that touched it last, nil when it is not there any more
	// Unmarked says that the mailbox has that message's row without a mark.
	Unmarked bool
}

// Event is what an event says.
type Event struct {
	ID      int64
	Type    outbox.Type
	Version int64
	Payload json.RawMessage
}

// Message is how a message ended and how its mark stands.
type Message struct {
	State                 message.State
	Marked, Owed, GivenUp bool
}

// Policy is what Compare must be told about the site.
type Policy struct {
	// Marks says that processed marks are written.
	Marks bool
	// Kept is since when events and messages are all there: of what was last touched before, they may have been deleted.
	Kept time.Time
}

// Difference is one finding.
type Difference struct {
	FLID   int64
	About  About
	Detail string // one line, for people
}

// Compare gives what does not agree, at most one finding about each thing.
func Compare(e Evidence, p Policy) []Difference {
	var all []Difference
	add := func(about About, detail string) {
		if detail != "" {
			all = append(all, Difference{e.FLID, about, detail})
		}
	}
	if e.Unreadable != "" {
		add(AboutState, "cannot be read: "+e.Unreadable)
		return all
	}
	add(AboutEvent, e.event(p))
	add(AboutHistory, e.history())
	add(AboutLinks, e.links())
	add(AboutMessage, e.message(p))
	add(AboutMark, e.mark(p))
	return all
}

func (e Evidence) event(p Policy) string {
	f := e.Flight
	switch {
	case e.Event == nil:
		if f.Published && !f.UpdatedAt.Before(p.Kept) {
			return fmt.Sprintf("version %d is published, but there is no event of it", f.Version)
		}
	case !f.Published:
		if e.Event.Type != outbox.Tombstone {
			return fmt.Sprintf("readers of schd are not to have it, but event %d gave it to them", e.Event.ID)
		}
	case e.Event.Type == outbox.Tombstone:
		return fmt.Sprintf("it lives, but event %d told that it is gone", e.Event.ID)
	case e.Event.Version != f.Version:
		return fmt.Sprintf("it is at version %d, event %d told version %d", f.Version, e.Event.ID, e.Event.Version)
	default:
		if names := differing(e.Doc, e.Event.Payload); len(names) > 0 {
			return fmt.Sprintf("event %d told the same version with other values: %s", e.Event.ID, strings.Join(names, ", "))
		}
	}
	return ""
}

func (e Evidence) history() string {
	if e.Changed == 0 || e.Changed == e.Flight.Version {
		return ""
	}
	return fmt.Sprintf("it is at version %d, its history ends at version %d", e.Flight.Version, e.Changed)
}

func (e Evidence) links() string {
	children := slices.Sorted(slices.Values(e.Children))
	if !e.Flight.Live() || slices.Equal(children, e.Flight.MAFL) {
		return ""
	}
	return fmt.Sprintf("its children are [%s], it lists [%s]", strings.Join(children, " "), strings.Join(e.Flight.MAFL, " "))
}

func (e Evidence) message(p Policy) string {
	switch {
	case e.Message == nil && e.Flight.UpdatedAt.Before(p.Kept), e.Message != nil && e.Message.State == message.Succeeded:
		return ""
	case e.Message == nil:
		return fmt.Sprintf("message %s touched it last, and is not there", e.Flight.LastMessage)
	}
	return fmt.Sprintf("message %s touched it last, and is %s", e.Flight.LastMessage, e.Message.State)
}

func (e Evidence) mark(p Policy) string {
	m := e.Message
	switch {
	case !p.Marks || m == nil || m.State != message.Succeeded:
		return ""
	case !m.Marked && !m.Owed && !m.GivenUp:
		return fmt.Sprintf("message %s has no mark, is owed none, and none was given up", e.Flight.LastMessage)
	case m.Marked && e.Unmarked:
		return fmt.Sprintf("message %s was marked, and in the mailbox it is not", e.Flight.LastMessage)
	}
	return ""
}

// differing names the members of two objects that differ, sorted; "everything" when one of them is no object. Both were
// written by the same code, so equal values are equal bytes.
func differing(a, b json.RawMessage) []string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return []string{"everything"}
	}
	maps.Copy(x, missing(x, y))
	names := slices.Sorted(maps.Keys(x))
	return slices.DeleteFunc(names, func(name string) bool { return bytes.Equal(x[name], y[name]) })
}

// missing are the members of y that x has not, without their values.
func missing(x, y map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name := range y {
		if _, there := x[name]; !there {
			out[name] = nil
		}
	}
	return out
}

// Sampled says whether a flight belongs to the sample of a day that has this share of all, 0 … 1. Another day has another
// sample; the same day always the same, so that a run may be cut into pieces.
func Sampled(flid int64, day string, share float64) bool {
	sum := sha256.Sum256([]byte(day + "/" + strconv.FormatInt(flid, 10)))
	return float64(binary.BigEndian.Uint32(sum[:4])) < share*(1<<32)
}
