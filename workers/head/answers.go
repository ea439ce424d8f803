package head

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
	"msgexchange/jobs/sis"
)

// unmatchedResp is the skip reason of an answer nobody waits for (design §9).
const unmatchedResp = "unmatched-resp"

// asked are the requests that the answers of a batch may belong to, as the transaction sees and holds them.
type asked struct {
	shadow bool
	newest map[message.Kind][]request.Request
}

// asked reads and locks them.
func (h *Head) asked(ctx context.Context, tx pgx.Tx, decoded []sis.Message) (*asked, error) {
	a := &asked{shadow: h.config.Shadow}
	var kinds []message.Kind
	for _, m := range decoded {
		if kind := m.Spec.Answers; kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if a.shadow || len(kinds) == 0 {
		return a, nil
	}
	var err error
	a.newest, err = h.store.NewestRequests(ctx, tx, kinds)
	return a, err
}

// match says whose answer m is; a shadow takes every one.
func (a *asked) match(kind message.Kind, m sis.Message) request.Verdict {
	if a.shadow {
		return request.Verdict{How: request.Shadow}
	}
	return request.Match(a.newest[kind], m.Meta)
}

// close lets a request count as answered for the messages after this one.
func (a *asked) close(r request.Request) {
	of := a.newest[r.Kind]
	for i := range of {
		if of[i].ID == r.ID {
			of[i].State = request.Done
		}
	}
}

// answer gives a message that is an answer to the request it answers; ok is false, and the message skipped, when it is
// nobody's.
func (g *judge) answer(in input, j *judged) (ok bool) {
	kind := in.msg.Spec.Answers
	if kind == "" {
		return true
	}
	v := g.asked.match(kind, in.msg)
	if !v.Matched() {
		j.skipAs(unmatchedResp)
		j.note = fmt.Errorf("no answer to a request of ours: %s", v.Why)
		return false
	}
	j.answers = &store.Answer{RequestID: v.Request.ID, Kind: kind, MsgID: in.row.Pos.ID, How: v.How}
	j.request = v.Request
	return true
}
