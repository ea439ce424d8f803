package message

import (
	"errors"
	"fmt"
	"time"
)

// IdentityPolicy says when two messages are one (design §5); keys under "identity.".
type IdentityPolicy struct {
	// IncludeDayBoundary adds the day of DTTM to the key. Changing it on a running system changes what a duplicate is. Default false.
	IncludeDayBoundary bool `koanf:"include-day-boundary"`
	// OnReuse says what happens to a message whose identity is taken by one with another body: "skip" or "process". Default skip.
	OnReuse string `koanf:"on-reuse"`
	// WrapGuard is how far apart two DTTM must lie for the sender's counter to have wrapped. 1m … 720h. Default 12h.
	WrapGuard time.Duration `koanf:"wrap-guard"`
	// Retention is how long identities are kept. At least 24h. Default 9600h (400 days).
	Retention time.Duration `koanf:"retention"`
}

// The values of IdentityPolicy.OnReuse.
const (
	OnReuseSkip    = "skip"
	OnReuseProcess = "process"
)

// IdentityDefaults are the values of the contract's section 3.
func IdentityDefaults() IdentityPolicy {
	return IdentityPolicy{OnReuse: OnReuseSkip, WrapGuard: 12 * time.Hour, Retention: 400 * 24 * time.Hour}
}

// Validate lists everything that is wrong with p, by key without prefix.
func (p IdentityPolicy) Validate() error {
	var errs []error
	if p.OnReuse != OnReuseSkip && p.OnReuse != OnReuseProcess {
		errs = append(errs, fmt.Errorf("on-reuse: %q is neither skip nor process", p.OnReuse))
	}
	if p.WrapGuard < time.Minute || p.WrapGuard > 30*24*time.Hour {
		errs = append(errs, fmt.Errorf("wrap-guard: %s is not within 1m … 720h", p.WrapGuard))
	}
	if p.Retention < 24*time.Hour {
		errs = append(errs, fmt.Errorf("retention: %s is less than 24h", p.Retention))
	}
	return errors.Join(errs...)
}

// Key is the identity of a message under this policy.
func (p IdentityPolicy) Key(m Meta) string {
	key := m.IdentityKey()
	if p.IncludeDayBoundary {
		key += "|" + m.DTTM.Format("20060102")
	}
	return key
}

// Reuse is what a message met when its identity was already taken, as it is stored and counted.
type Reuse string

// The closed set. "" is the usual case: the identity was free.
const (
	ReuseNone      Reuse = ""
	ReuseDuplicate Reuse = "duplicate" // the same message again: skipped
	ReuseContent   Reuse = "content"   // another body within the guard: the counter has probably restarted; skipped, and alerted (K26)
	ReuseProcessed Reuse = "processed" // the same, and policy says process
	ReuseWrapped   Reuse = "wrapped"   // far apart: the six-digit counter has wrapped
)

// AllReuses lists what is stored.
func AllReuses() []Reuse { return []Reuse{ReuseDuplicate, ReuseContent, ReuseProcessed, ReuseWrapped} }

// Process says that the message takes the identity over and is processed.
func (r Reuse) Process() bool { return r == ReuseNone || r == ReuseProcessed || r == ReuseWrapped }

// Meet says what a message made at now finds when its identity is held by one made at was.
func (p IdentityPolicy) Meet(was, now time.Time, sameBody bool) Reuse {
	switch {
	case now.Sub(was).Abs() > p.WrapGuard:
		return ReuseWrapped
	case sameBody:
		return ReuseDuplicate
	case p.OnReuse == OnReuseProcess:
		return ReuseProcessed
	default:
		return ReuseContent
	}
}
