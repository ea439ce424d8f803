package head

import (
	"fmt"
	"runtime/debug"
	"time"

	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
)

// judged is what becomes of one message.
type judged struct {
	row     store.Unfinished
	msg     sis.Message
	verdict retry.Verdict
	reset   bool   // not tried: a message before it in the batch holds the line
	skip    string // skip_reason
	err     error
	bound   string // the identity key that is its own
	outcome flight.Outcome
	reuse   message.Reuse   // what its identity met
	note    error           // why it was skipped
	answers *store.Answer   // the request that it answers; nil when it is no answer
	request request.Request // that request
	reference
}

// finished is j as it is stored.
func (j judged) finished(marks bool) store.Finished {
	why := j.err
	if why == nil {
		why = j.note
	}
	return store.Finished{
		ID: j.row.Pos.ID, State: j.verdict.State, Reset: j.reset, Class: j.verdict.Class, Root: j.verdict.Root, Err: why,
		Skip: j.skip, Next: j.verdict.Next, Mark: marks, Meta: j.msg.Meta, Hash: j.msg.Hash, Bound: j.bound, Reuse: j.reuse,
		HasMeta: hasMeta(j.msg),
	}
}

func hasMeta(m sis.Message) bool { return m.Meta.TYPE != "" }

// judge decides messages in order on one set of flights, each seeing what those before it did. Pure but for its own state:
// the flights, identities and open requests it was given are those of the transaction that will commit the result.
type judge struct {
	config  Config
	set     *flight.Set
	ids     map[string]store.Identity
	rebound map[string]bool // keys to be written
	order   []string        // they, in the order of their messages
	asked   *asked
	now     time.Time
	held    bool // a message failed and holds the line, or what it brought must be stored before the next is decided
}

// next judges one message.
func (g *judge) next(in input) judged {
	j := judged{row: in.row, msg: in.msg}
	if g.held {
		j.reset, j.verdict.State = true, in.row.State
		return j
	}
	g.try(in, &j)
	if j.err != nil {
		j.verdict = g.config.Retry.Failed(fault.Of(j.err), in.row.Attempts, in.row.Started, g.now)
		g.held = j.verdict.State == message.Failed
	}
	return j
}

// try walks the dictionary's section 4 from where decoding left off: ignored, identity, then the body.
func (g *judge) try(in input, j *judged) {
	if !hasMeta(in.msg) {
		j.err = in.err
		return
	}
	if in.msg.Ignored != "" {
		j.skipAs("ignored:" + in.msg.Ignored)
		return
	}
	if owner, ok := g.bind(in, j); !ok {
		j.skipAs("duplicate-of:" + owner.String())
		return
	}
	if in.err != nil {
		j.err = in.err
		return
	}
	if !g.answer(in, j) {
		return
	}
	j.outcome, j.err = g.decide(in)
	if j.err != nil {
		return
	}
	if in.msg.Reference != nil {
		g.refer(in, j)
	}
	g.set.Apply(j.outcome)
	g.asked.close(j.request)
	j.verdict.State = message.Succeeded
}

func (j *judged) skipAs(reason string) { j.skip, j.verdict.State = reason, message.Skipped }

// bind makes the identity the message's own; ok is false when it is another's and the message is a duplicate of owner.
func (g *judge) bind(in input, j *judged) (owner message.Position, ok bool) {
	key := g.config.Identity.Key(in.msg.Meta)
	was, taken := g.ids[key]
	if taken && was.Pos == in.row.Pos {
		j.bound = key
		return was.Pos, true
	}
	if taken {
		j.reuse = g.config.Identity.Meet(was.DTTM, in.msg.Meta.DTTM, was.Hash == in.msg.Hash)
		if !j.reuse.Process() {
			return was.Pos, false
		}
	}
	g.ids[key] = store.Identity{Key: key, Pos: in.row.Pos, DTTM: in.msg.Meta.DTTM, Hash: in.msg.Hash}
	if !g.rebound[key] {
		g.rebound[key], g.order = true, append(g.order, key)
	}
	j.bound = key
	return in.row.Pos, true
}

// decide asks the pure core; its panic is a defect of ours, and this message's alone.
func (g *judge) decide(in input) (o flight.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = defect("decide", in.row.Pos.ID, p)
		}
	}()
	if err := infraHook(in.row); err != nil {
		return flight.Outcome{}, err
	}
	return flight.Decide(g.set, in.msg, in.row.Pos, g.now, g.config.Flight)
}

// decode reads one text. What is missing or too large is MALFORMED: the message can never be tried (contract §8.17).
func decode(raw store.Raw, opt sis.Options, id int64) (m sis.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = defect("decode", id, p)
		}
	}()
	switch {
	case raw.Oversize:
		return m, &fault.Error{Class: fault.Malformed, Op: "decode", MsgID: id, Err: fmt.Errorf("text of %d bytes, at most %d are allowed", raw.SizeBytes, sis.MaxBytes)}
	case raw.Text == nil:
		return m, &fault.Error{Class: fault.Malformed, Op: "decode", MsgID: id, Err: fmt.Errorf("raw-missing: neither we nor the mailbox have the text")}
	}
	return sis.Decode(raw.Text, opt)
}

func defect(op string, id int64, p any) error {
	return &fault.Error{Class: fault.CodecError, Op: op, MsgID: id, Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}
