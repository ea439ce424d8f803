package ops

import (
	"time"

	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// tryResult is what became of one try of a message.
type tryResult string

// The closed set: the state that the try left the message in, or one of these.
const (
	// tryUnderWay is a try that has been charged and has no result yet; for long only if the process ended during it.
	tryUnderWay tryResult = "UNDER_WAY"
	// tryInterrupted is a try that never had a result: the process ended during it.
	tryInterrupted tryResult = "INTERRUPTED"
)

// attempt is one try of a message.
type attempt struct {
	Replay  int32       `json:"replay"`  // how often the message had been put back before
	Attempt int32       `json:"attempt"` // counted from 1, anew after each replay
	At      *time.Time  `json:"at"`      // when its result was stored; null without one
	Result  tryResult   `json:"result"`
	Class   fault.Class `json:"class,omitempty"`
	Error   string      `json:"error,omitempty"`
}

// attempts tells every try of a message: those that failed are on record, the last one is in its row, and what is charged but
// has neither was cut short. Only the last 50 failures are on record.
func attempts(m store.OpsMessage, failed []store.Failure) []attempt {
	log := []attempt{}
	add := func(replay, upTo int32, result tryResult) { // tries without a result before the next that has one
		last := int32(0)
		if n := len(log); n > 0 && log[n-1].Replay == replay {
			last = log[n-1].Attempt
		} else if n == 0 && len(failed) >= store.MaxFailures {
			last = upTo // the record does not go back that far
		}
		for i := last + 1; i <= upTo; i++ {
			log = append(log, attempt{Replay: replay, Attempt: i, Result: result})
		}
	}
	for _, f := range failed {
		add(f.Replay, f.Attempt-1, tryInterrupted)
		log = append(log, attempt{Replay: f.Replay, Attempt: f.Attempt, At: &f.At, Result: tryResult(f.State), Class: f.Class, Error: f.Error})
	}
	state := message.State(m.State)
	switch {
	case !state.Terminal():
		add(m.ReplayCount, m.Attempts-1, tryInterrupted)
		add(m.ReplayCount, m.Attempts, tryUnderWay)
	case state != message.Dead && m.Attempts > 0: // a dead one's last try is on record
		add(m.ReplayCount, m.Attempts-1, tryInterrupted)
		log = append(log, attempt{Replay: m.ReplayCount, Attempt: m.Attempts, At: m.FinishedAt, Result: tryResult(state)})
	}
	return log
}
