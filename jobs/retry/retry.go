// Package retry is the schedule of a message that failed: tried again, when, or given up (design §3). One pure function;
// the loop around it is River's and the head's.
package retry

import (
	"errors"
	"fmt"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Policy says how often and for how long a message is tried; keys under "pipeline.".
type Policy struct {
	// MaxAttempts is the number of tries after which a message is DEAD. 1 … 100. Default 5.
	MaxAttempts int `koanf:"max-attempts"`
	// UnsupportedAttempts is MaxAttempts for kinds outside the catalogue, which hold the head as long. 0 means MaxAttempts. Default 0.
	UnsupportedAttempts int `koanf:"unsupported-attempts"`
	// Backoff is the pause after the first, second, … failed try; the last one repeats. Default 1s,2s,4s,8s,16s.
	Backoff []time.Duration `koanf:"backoff"`
	// BackoffCap bounds every pause. Default 60s.
	BackoffCap time.Duration `koanf:"backoff-cap"`
	// HeadDeadline is how long a message may hold the head, from its first try. A try that fails later is its last. Default 10m.
	HeadDeadline time.Duration `koanf:"head-deadline"`
}

// Defaults are the values of the contract's section 3.
func Defaults() Policy {
	return Policy{
		MaxAttempts:  5,
		Backoff:      []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second},
		BackoffCap:   time.Minute,
		HeadDeadline: 10 * time.Minute,
	}
}

// Validate lists everything that is wrong with p, by key without prefix.
func (p Policy) Validate() error {
	var errs []error
	if p.MaxAttempts < 1 || p.MaxAttempts > 100 {
		errs = append(errs, fmt.Errorf("max-attempts: %d is not within 1 … 100", p.MaxAttempts))
	}
	if p.UnsupportedAttempts < 0 || p.UnsupportedAttempts > 100 {
		errs = append(errs, fmt.Errorf("unsupported-attempts: %d is not within 0 … 100", p.UnsupportedAttempts))
	}
	if len(p.Backoff) == 0 {
		errs = append(errs, errors.New("backoff: at least one pause is needed"))
	}
	for _, d := range p.Backoff {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("backoff: %s is not a pause", d))
		}
	}
	if p.BackoffCap <= 0 {
		errs = append(errs, fmt.Errorf("backoff-cap: %s is not a pause", p.BackoffCap))
	}
	if p.HeadDeadline <= 0 {
		errs = append(errs, fmt.Errorf("head-deadline: %s is not a time", p.HeadDeadline))
	}
	return errors.Join(errs...)
}

// Verdict is where a failed message goes.
type Verdict struct {
	State message.State // FAILED or DEAD
	Class fault.Class   // as stored in error_class
	Root  fault.Class   // as stored in root_error_class: the class of the failure itself
	Next  time.Time     // when FAILED: not tried again before
}

// Failed gives the verdict on a try that failed with class c. attempts counts that try; started is when the message was
// first tried. Classes that are terminal end it at once; the others until attempts or the deadline are used up. An outage
// is nobody's fault and never comes here: it is INFRA if it does.
func (p Policy) Failed(c fault.Class, attempts int, started, now time.Time) Verdict {
	if c.Terminal() {
		return Verdict{State: message.Dead, Class: c, Root: c}
	}
	if !c.Retryable() {
		c = fault.Infra
	}
	if attempts >= p.attemptsFor(c) || now.Sub(started) >= p.HeadDeadline {
		return Verdict{State: message.Dead, Class: fault.Exhausted, Root: c}
	}
	return Verdict{State: message.Failed, Class: c, Root: c, Next: now.Add(p.Pause(attempts))}
}

// Spent says that a message that has been tried attempts times may not be tried again: its last try took the process
// with it, so nobody was left to record a verdict (O5, K23).
func (p Policy) Spent(attempts int) bool { return attempts >= p.MaxAttempts }

// Pause is the wait after the n-th failed try, n from 1.
func (p Policy) Pause(n int) time.Duration {
	i := min(max(n, 1), len(p.Backoff)) - 1
	return min(p.Backoff[i], p.BackoffCap)
}

func (p Policy) attemptsFor(c fault.Class) int {
	if c == fault.Unsupported && p.UnsupportedAttempts > 0 {
		return p.UnsupportedAttempts
	}
	return p.MaxAttempts
}
