// Package replay decides which finished messages may be put back into the line by an operator (design §5, §10).
// A message put back keeps its identity and its place: it is the smallest unfinished one until it is done, and by
// provenance it changes only what nothing newer has set.
package replay

import (
	"fmt"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Candidate is what is known of a message that somebody wants put back.
type Candidate struct {
	State message.State
	Class fault.Class // of a DEAD one
	Skip  string      // skip_reason of a SKIPPED one
	Reuse message.Reuse
	// Marking says that its processed mark is being written at this moment.
	Marking bool
	// Text says that its text is still to be had, from us or from the mailbox.
	Text bool
	// Closed says that its id belongs to an earlier generation of ids.
	Closed bool
}

// Verdict on a candidate.
type Verdict struct {
	Why string // it may not be put back; empty when it may
	// Takes says that the message takes its identity from the one that holds it: it was skipped as a duplicate though it
	// says something else, and the operator insists.
	Takes bool
}

// Judge says whether the candidate may be put back. force is the operator's word that an identity was reused (K26).
func Judge(c Candidate, force bool) Verdict {
	v := Verdict{Why: ended(c, force), Takes: c.State == message.Skipped}
	switch {
	case v.Why != "":
	case c.Closed:
		v.Why = "its id is of an earlier generation of ids"
	case c.Marking:
		v.Why = "its processed mark is being written; try again in a moment"
	case !c.Text:
		v.Why = "its text is no longer kept, neither by us nor by the mailbox"
	}
	if v.Why != "" {
		v.Takes = false
	}
	return v
}

// ended says why a message that ended like this stays as it is; empty when it need not.
func ended(c Candidate, force bool) string {
	switch c.State {
	case message.Pending, message.Failed:
		return "it is not finished: it will be tried by itself"
	case message.Succeeded:
		return "it has succeeded"
	case message.Skipped:
		switch {
		case c.Reuse != message.ReuseContent:
			return "it was skipped: " + c.Skip
		case !force:
			return fmt.Sprintf("it was skipped: %s, with another body; force puts it back all the same", c.Skip)
		}
		return ""
	case message.Dead:
		if !c.Class.Replayable() {
			return fmt.Sprintf("%s is the message's own fault: it would end the same way", c.Class)
		}
		return ""
	}
	return fmt.Sprintf("its state %q is unknown", c.State)
}
