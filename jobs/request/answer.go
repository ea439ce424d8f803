package request

import (
	"time"

	"msgexchange/jobs/message"
)

// How says how an answer was told to be that of a request, as it is stored in match.
type How string

// The closed set of ways.
const (
	Exact    How = "exact"    // it carries our SEQN
	Inferred How = "inferred" // it was made after the open request of its kind was sent
	Shadow   How = "shadow"   // we only look on: somebody else asked
)

// AllHows lists the ways.
func AllHows() []How { return []How{Exact, Inferred, Shadow} }

// Verdict is what becomes of an answer.
type Verdict struct {
	Request Request // the one it answers
	How     How     // empty: it is nobody's answer
	Why     string  // it is nobody's
}

// Matched says that the answer counts.
func (v Verdict) Matched() bool { return v.How != "" }

// Newest is how many requests of a kind, from the newest, Match has to be shown.
const Newest = 8

// Match finds the request that m answers among the newest of its kind, closed ones too. An answer counts for the open one
// only, and only if it was made in the second in which that was sent or later: exactly when it carries our SEQN, else
// inferred. One that carries the SEQN of a closed request is that one's, come late or twice, and never the open one's.
func Match(newest []Request, m message.Meta) Verdict {
	var open *Request
	for i := range newest {
		if newest[i].State.Open() {
			open = &newest[i]
		}
	}
	switch {
	case open == nil:
		return Verdict{Why: "no request of its kind is open"}
	case open.since().IsZero():
		return Verdict{Why: "the open request has not been sent yet"}
	case m.DTTM.Before(open.since()):
		return Verdict{Why: "it was made before the open request was sent"}
	case m.SEQN == open.SEQN:
		return Verdict{Request: *open, How: Exact}
	}
	for _, r := range newest {
		if r.ID != open.ID && r.SEQN == m.SEQN && !r.since().IsZero() && !m.DTTM.Before(r.since()) {
			return Verdict{Why: "it answers a request that is closed"}
		}
	}
	return Verdict{Request: *open, How: Inferred}
}

// since is the second from which on an answer can have been made; zero while the request was not on its way. Between the
// mailbox's commit and ours only SendingAt is known, and an answer may be that quick.
func (r Request) since() time.Time {
	if r.SentAt.IsZero() {
		return r.SendingAt.Truncate(time.Second)
	}
	return r.SentAt.Truncate(time.Second)
}
