// Package request knows the life of what we ask the airport's database for: the kinds of requests, their states, when each
// one is sent, watched and given up, and which answer belongs to which (design §9; contract §8.18, §8.28). Pure: it sends
// nothing and reads no clock.
//
//	REGISTERED → SENT → WAITING → DONE
//	     └────────┴────────┴────→ EXPIRED
//
// REGISTERED: nobody knows yet whether it is in the mailbox. SENT: it is. WAITING: the transport took it. A request that is
// DONE or EXPIRED never changes again.
package request

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// State is where a request stands.
type State string

// The closed set of states, as they are stored.
const (
	Registered State = "REGISTERED"
	Sent       State = "SENT"
	Waiting    State = "WAITING"
	Done       State = "DONE"
	Expired    State = "EXPIRED"
)

// AllStates lists the states in the order of a request's life.
func AllStates() []State { return []State{Registered, Sent, Waiting, Done, Expired} }

// Open says that an answer may still come.
func (s State) Open() bool { return s == Registered || s == Sent || s == Waiting }

// May says that a request may go from s to next.
func (s State) May(next State) bool {
	switch s {
	case Registered:
		return next == Sent || next == Done || next == Expired // DONE: its answer overtook the note that it was sent
	case Sent:
		return next == Waiting || next == Done || next == Expired
	case Waiting:
		return next == Done || next == Expired
	case Done, Expired:
		return false
	}
	return false
}

// Schedule is the kind that asks for the flights of a window; all others ask for a list of reference data.
const Schedule = sis.ScheduleRequest

// KindError says that this site does not make requests of that kind.
type KindError struct{ Kind message.Kind }

// Error names the kind and where the kinds are set.
func (e KindError) Error() string {
	return fmt.Sprintf("this site makes no requests of kind %q (request.kinds)", e.Kind)
}

// Request is one request. Zero times have not come.
type Request struct {
	ID           int64
	Kind         message.Kind
	State        State
	SEQN         int64  // ours, 1 … 999999
	Body         string // the text for the mailbox: kept, so that a second try writes exactly the first one's
	Window       Window // of RQFD
	RegisteredAt time.Time
	SendingAt    time.Time // by the mailbox's clock, just before we put it there; SentAt follows once that is certain
	SentAt       time.Time // by the mailbox's clock: when it was put there
	NotedAt      time.Time // by ours: when we knew that; never before SentAt if the clocks agree
	TakenAt      time.Time // when the transport took it
	MailboxID    int64     // COUTMSGS_ID
}

// Window is what a schedule request asks for.
type Window struct{ From, To time.Time }

// MaxWindow is the longest window that may be asked for (contract §4).
const MaxWindow = 3 * 24 * time.Hour

// Validate says what is wrong with a window.
func (w Window) Validate() error {
	switch {
	case w.From.IsZero() || w.To.IsZero():
		return errors.New("startTime and endTime are both needed")
	case !w.From.Before(w.To):
		return errors.New("startTime must be before endTime")
	case w.To.Sub(w.From) > MaxWindow:
		return fmt.Errorf("the window must not be longer than %s", MaxWindow)
	case w.From.Year() < firstYear || w.To.Year() > lastYear:
		return fmt.Errorf("the window must be within the years %d and %d: a request has room for two digits", firstYear, lastYear)
	}
	return nil
}

// The years that a request can name (dictionary 3: yy is 20yy).
const firstYear, lastYear = 2000, 2099

// Reason is why a request ended without its answer, as it is stored.
type Reason string

// The reasons.
const (
	TimedOut   Reason = "timeout"
	Superseded Reason = "superseded"          // a newer one of its kind was registered
	NotSent    Reason = "mailbox-unavailable" // the caller did not wait any longer
)

// Policy is how long answers may take, by kind.
type Policy struct {
	Schedule, List time.Duration
	ByKind         map[message.Kind]time.Duration
}

// Timeout of a kind.
func (p Policy) Timeout(kind message.Kind) time.Duration {
	if t, ok := p.ByKind[kind]; ok {
		return t
	}
	if kind == Schedule {
		return p.Schedule
	}
	return p.List
}

// Deadline is when r expires: its timeout after it was sent, before that after it was registered. The moments are of two
// clocks: one of the mailbox's that is behind ours shortens no request's life, and one that is ahead prolongs none.
func (p Policy) Deadline(r Request) time.Time {
	from := r.SentAt
	if !r.NotedAt.IsZero() && r.NotedAt.Before(from) {
		from = r.NotedAt
	}
	if from.Before(r.RegisteredAt) {
		from = r.RegisteredAt
	}
	return from.Add(p.Timeout(r.Kind))
}

// Agenda is what is to be done about the open requests at one moment.
type Agenda struct {
	Expire []Request
	Send   []Request // in the order in which they were registered
	Watch  []Request // in the mailbox and not taken yet, as far as we know
	// Next is the earliest deadline of those that stay open; zero when none does.
	Next time.Time
}

// Plan makes the agenda of the open requests.
func (p Policy) Plan(open []Request, now time.Time) Agenda {
	var a Agenda
	for _, r := range open {
		deadline := p.Deadline(r)
		switch {
		case !r.State.Open():
			continue
		case !now.Before(deadline):
			a.Expire = append(a.Expire, r)
			continue
		case r.State == Registered:
			a.Send = append(a.Send, r)
		case r.State == Sent:
			a.Watch = append(a.Watch, r)
		}
		if a.Next.IsZero() || deadline.Before(a.Next) {
			a.Next = deadline
		}
	}
	slices.SortFunc(a.Send, func(x, y Request) int { return cmp.Compare(x.ID, y.ID) })
	return a
}
