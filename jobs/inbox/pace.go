package inbox

import "time"

// Pace is how often to look at the mailbox (design §4).
type Pace struct {
	Busy time.Duration // after a round that found rows
	Idle time.Duration // the most, reached by doubling
}

// After gives the pause after a round, given the one before it: none after a full batch, short after news, then twice as
// long each time.
func (p Pace) After(before time.Duration, news, full bool) time.Duration {
	switch {
	case full:
		return 0
	case news:
		return p.Busy
	case before == 0:
		return p.Idle
	}
	return min(2*before, p.Idle)
}
