// Package backfill decides about the processed mark that every finished message owes the mailbox: which value is written,
// what each result means, when the next try is, when to give up (design §8; contract §8.4). Pure.
//
// A mark is written once and never over another; a message that is not finished is never marked.
package backfill

import (
	"strings"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Outcome is how a message ended, as far as its mark tells.
type Outcome string

// The closed set of outcomes; keys of the status map.
const (
	Success   Outcome = "SUCCESS"
	Skipped   Outcome = "SKIPPED"
	Duplicate Outcome = "DUPLICATE"
	Dead      Outcome = "DEAD"
)

// AllOutcomes lists the outcomes.
func AllOutcomes() []Outcome { return []Outcome{Success, Skipped, Duplicate, Dead} }

// duplicatePrefix begins the skip_reason of a duplicate (contract §8.1).
const duplicatePrefix = "duplicate-of:"

// OutcomeOf gives the outcome of a message in a terminal state.
func OutcomeOf(s message.State, skipReason string) Outcome {
	switch {
	case s == message.Succeeded:
		return Success
	case s == message.Skipped && strings.HasPrefix(skipReason, duplicatePrefix):
		return Duplicate
	case s == message.Skipped:
		return Skipped
	}
	return Dead
}

// Values are what is written into CMINMSGS_STATUS.
type Values struct {
	Processed string             // for every outcome the map does not name
	ByOutcome map[Outcome]string // usually empty
}

// Status is the value for an outcome.
func (v Values) Status(o Outcome) string {
	if s, ok := v.ByOutcome[o]; ok {
		return s
	}
	return v.Processed
}

// Debt is a mark owed.
type Debt struct {
	Pos        message.Position
	State      message.State // terminal
	SkipReason string
	Meta       message.Meta // zero where it could not be read
	ReceivedAt time.Time    // zero: unknown
	// Attempts counts this try too: it is on record before the mailbox is asked.
	Attempts int
	// Replays tells a debt from a later one of the same message, owed after an operator put it back.
	Replays int
}

// Mark is what is written into one mailbox row.
type Mark struct {
	ID     int64
	Status string
	// Meta fills the SUBSYSTEM columns where they are NULL; a zero one fills nothing.
	Meta message.Meta
	// ReceivedAt is when the message's row was received. A row that says otherwise is another message's, which was given
	// the id again, and is not marked. Zero: unknown, any row will do.
	ReceivedAt time.Time
}

// Mark makes the mark that pays d.
func (d Debt) Mark(v Values) Mark {
	return Mark{ID: d.Pos.ID, Status: v.Status(OutcomeOf(d.State, d.SkipReason)), Meta: d.Meta, ReceivedAt: d.ReceivedAt}
}

// Result is what came of one mark, told by reading, never by counting changed rows (K17).
type Result string

// The closed set of results.
const (
	Written   Result = "written"   // it was NULL and is ours now
	Already   Result = "already"   // somebody has marked it; kept as it is
	Missing   Result = "missing"   // there is no such row any more, or only another message's
	Transient Result = "transient" // the mailbox refused this row now, or somebody holds its lock
)

// Answer is the result for one row. Err is set for Transient only.
type Answer struct {
	ID     int64
	Result Result
	Err    error
}

// Reason is why nobody tries a mark any more. The stored spelling is the value.
type Reason string

// The closed set of reasons.
const (
	RowMissing       Reason = "row-missing"
	AttemptsSpent    Reason = "attempts-spent"
	GenerationClosed Reason = "generation-closed" // a reseed gave the ids to other messages (contract §8.10)
)

// Policy is how long and how often to try.
type Policy struct {
	MaxAttempts int
	// Overdue is the age, by ReceivedAt, from which a mark is tried at the shortest pause, however often it failed.
	Overdue time.Duration
}

// The pauses after a transient failure double from the first to the longest.
const (
	firstPause   = 30 * time.Second
	longestPause = 15 * time.Minute
)

// Settlement is what becomes of a debt: paid (At), owed on (Next) or given up (AbandonedAt), exactly one of them.
type Settlement struct {
	Debt        Debt
	At          time.Time
	Next        time.Time
	Error       string
	AbandonedAt time.Time
	Reason      Reason
}

// Settle says what becomes of d after a, at now.
func (p Policy) Settle(d Debt, a Answer, now time.Time) Settlement {
	s := Settlement{Debt: d}
	switch a.Result {
	case Written, Already:
		s.At = now
	case Missing:
		s.AbandonedAt, s.Reason = now, RowMissing
	case Transient:
		s.Error = fault.Text(a.Err)
		if d.Attempts >= p.MaxAttempts {
			s.AbandonedAt, s.Reason = now, AttemptsSpent
			break
		}
		s.Next = now.Add(p.pause(d, now))
	}
	return s
}

// Unasked takes the try back: the mailbox could not be asked, which spends no attempt (K15). The debt is due at once; the
// pause is the worker's.
func Unasked(d Debt, now time.Time) Settlement {
	d.Attempts--
	return Settlement{Debt: d, Next: now}
}

func (p Policy) pause(d Debt, now time.Time) time.Duration {
	if !d.ReceivedAt.IsZero() && now.Sub(d.ReceivedAt) >= p.Overdue {
		return firstPause
	}
	pause := firstPause
	for n := 1; n < d.Attempts && pause < longestPause; n++ {
		pause *= 2
	}
	return min(pause, longestPause)
}
