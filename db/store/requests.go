package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

// LockRequestKind orders those who register a request of the kind, until tx ends.
func (s *Store) LockRequestKind(ctx context.Context, tx pgx.Tx, kind message.Kind) error {
	return wrapped("lock requests "+string(kind), s.q.LockRequestKind(ctx, tx, string(kind)))
}

// SupersedeRequest ends the open request of the kind, if there is one.
func (s *Store) SupersedeRequest(ctx context.Context, tx pgx.Tx, kind message.Kind, now time.Time) error {
	err := s.q.SupersedeRequest(ctx, tx, pgq.SupersedeRequestParams{Now: now, Reason: string(request.Superseded), Kind: string(kind)})
	return wrapped("end the open request "+string(kind), err)
}

// NextSEQN takes the next number of our counter; after 999999 comes 1.
func (s *Store) NextSEQN(ctx context.Context, q db.Querier) (int64, error) {
	n, err := s.q.NextRequestSeqn(ctx, q)
	return n, wrapped("take a number", err)
}

// InsertRequest registers r and gives its id. actor is who asked.
func (s *Store) InsertRequest(ctx context.Context, tx pgx.Tx, r request.Request, actor string) (int64, error) {
	id, err := s.q.InsertRequest(ctx, tx, pgq.InsertRequestParams{
		Kind: string(r.Kind), Seqn: &r.SEQN, Body: r.Body, Now: r.RegisteredAt, Actor: actor,
		WindowStart: timeOrNil(r.Window.From), WindowEnd: timeOrNil(r.Window.To),
	})
	return id, wrapped("register request "+string(r.Kind), err)
}

// OpenRequests gives all open requests, in the order in which they were registered.
func (s *Store) OpenRequests(ctx context.Context, q db.Querier) ([]request.Request, error) {
	rows, err := s.q.OpenRequests(ctx, q)
	if err != nil {
		return nil, wrapped("read open requests", err)
	}
	out := make([]request.Request, len(rows))
	for i, r := range rows {
		out[i] = request.Request{
			ID: r.ID, Kind: message.Kind(r.Kind), State: request.State(r.State), SEQN: orZeroOf(r.Seqn), Body: orZeroOf(r.Body),
			RegisteredAt: r.RegisteredAt, SendingAt: orZero(r.SendingAt), SentAt: orZero(r.SentAt), NotedAt: orZero(r.NotedAt),
			TakenAt: orZero(r.TakenAt), MailboxID: orZeroOf(r.CoutmsgsID),
		}
	}
	return out, nil
}

// RequestPending says whether any request is open.
func (s *Store) RequestPending(ctx context.Context, q db.Querier) (bool, error) {
	open, err := s.q.RequestPending(ctx, q)
	return open, db.Classify(err)
}

// RequestState gives a request's state and, once it is known, its COUTMSGS_ID.
func (s *Store) RequestState(ctx context.Context, q db.Querier, id int64) (request.State, int64, error) {
	r, err := s.q.RequestState(ctx, q, id)
	return request.State(r.State), orZeroOf(r.CoutmsgsID), wrapped(fmt.Sprintf("read request %d", id), err)
}

// BeginRequest puts on record that a request is about to be put into the mailbox, at being the mailbox's clock; ok is false
// when it is no longer to be sent.
func (s *Store) BeginRequest(ctx context.Context, tx pgx.Tx, id int64, at time.Time) (ok bool, err error) {
	n, err := s.q.BeginRequest(ctx, tx, pgq.BeginRequestParams{SendingAt: at, ID: id})
	return n == 1, wrapped(fmt.Sprintf("begin request %d", id), err)
}

// SentRequest puts on record that a request is in the mailbox since at, by the mailbox's clock, and that we know it now. One
// that ended meanwhile stays ended.
func (s *Store) SentRequest(ctx context.Context, tx pgx.Tx, id, mailboxID int64, at, now time.Time) error {
	err := s.q.SentRequest(ctx, tx, pgq.SentRequestParams{CoutmsgsID: mailboxID, SentAt: at, Now: now, ID: id})
	return wrapped(fmt.Sprintf("note that request %d was sent", id), err)
}

// TakenRequests puts on record which requests, by id, the transport has taken, and when.
func (s *Store) TakenRequests(ctx context.Context, tx pgx.Tx, taken map[int64]time.Time) error {
	var p pgq.TakenRequestsParams
	for id, at := range taken {
		p.Ids, p.TakenAt = append(p.Ids, id), append(p.TakenAt, at)
	}
	return wrapped("note that requests were taken", s.q.TakenRequests(ctx, tx, p))
}

// ExpireRequests ends those of the requests that are still in one of the states.
func (s *Store) ExpireRequests(
	ctx context.Context, tx pgx.Tx, ids []int64, why request.Reason, now time.Time, states ...request.State,
) error {
	p := pgq.ExpireRequestsParams{Now: now, Reason: string(why), Ids: ids}
	for _, st := range states {
		p.States = append(p.States, string(st))
	}
	return wrapped("expire requests", s.q.ExpireRequests(ctx, tx, p))
}

// NewestRequests gives the newest requests of each kind, as request.Match wants them, and keeps them as they are until tx ends.
func (s *Store) NewestRequests(ctx context.Context, tx pgx.Tx, kinds []message.Kind) (map[message.Kind][]request.Request, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	rows, err := s.q.NewestRequests(ctx, tx, pgq.NewestRequestsParams{Kinds: names, Newest: request.Newest})
	if err != nil {
		return nil, wrapped("look for open requests", err)
	}
	out := map[message.Kind][]request.Request{}
	for _, r := range rows {
		kind := message.Kind(r.Kind)
		out[kind] = append(out[kind], request.Request{
			ID: r.ID, Kind: kind, State: request.State(r.State), SEQN: orZeroOf(r.Seqn),
			RegisteredAt: r.RegisteredAt, SendingAt: orZero(r.SendingAt), SentAt: orZero(r.SentAt),
		})
	}
	return out, nil
}

// Answer is a message that counts as the answer to a request.
type Answer struct {
	RequestID int64        `json:"id"`   // 0 in a shadow, which asked nothing
	Kind      message.Kind `json:"kind"` // of the request
	MsgID     int64        `json:"msg_id"`
	How       request.How  `json:"match"`
}

// AnswerRequests makes the requests answered DONE, in the transaction that stores what the answers brought. It fails as an
// outage when one of them is no longer open: the batch must then be judged again.
func (s *Store) AnswerRequests(ctx context.Context, tx pgx.Tx, all []Answer, now time.Time) error {
	const op = "close answered requests"
	var asked, seen []Answer
	for _, a := range all {
		if a.How == request.Shadow {
			seen = append(seen, a)
		} else {
			asked = append(asked, a)
		}
	}
	if len(asked) > 0 {
		rows, err := json.Marshal(asked)
		if err != nil {
			return fault.Wrap(fault.Infra, op, err)
		}
		n, err := s.q.AnswerRequests(ctx, tx, pgq.AnswerRequestsParams{Now: now, Rows: rows})
		if err != nil {
			return wrapped(op, err)
		}
		if n != int64(len(asked)) {
			return fault.New(fault.Outage, op, "%d of %d requests were still open", n, len(asked))
		}
	}
	if len(seen) == 0 {
		return nil
	}
	rows, err := json.Marshal(seen)
	if err != nil {
		return fault.Wrap(fault.Infra, op, err)
	}
	return wrapped(op, s.q.ShadowAnswers(ctx, tx, pgq.ShadowAnswersParams{Now: now, Rows: rows}))
}

// OpenRequestCounts counts the open requests by kind.
func (s *Store) OpenRequestCounts(ctx context.Context, q db.Querier) (map[message.Kind]int64, error) {
	rows, err := s.q.OpenRequestCounts(ctx, q)
	if err != nil {
		return nil, wrapped("count open requests", err)
	}
	out := map[message.Kind]int64{}
	for _, r := range rows {
		out[message.Kind(r.Kind)] = r.Open
	}
	return out, nil
}

// ExpiredRequests counts the requests that ended without their answer.
func (s *Store) ExpiredRequests(ctx context.Context, q db.Querier) (int64, error) {
	n, err := s.q.ExpiredRequests(ctx, q)
	return n, wrapped("count expired requests", err)
}

// OpsRequest is a row of req_track as operators see it (contract §8.12, §8.25).
type OpsRequest struct {
	ID           int64      `json:"id"`
	Kind         string     `json:"kind"`
	State        string     `json:"state"`
	Seqn         *int64     `json:"seqn"`
	CoutmsgsID   *int64     `json:"coutmsgsId"`
	WindowStart  *time.Time `json:"windowStart"`
	WindowEnd    *time.Time `json:"windowEnd"`
	RegisteredAt time.Time  `json:"registeredAt"`
	SentAt       *time.Time `json:"sentAt"`
	TakenAt      *time.Time `json:"takenAt"`
	DoneAt       *time.Time `json:"doneAt"`
	ExpiredAt    *time.Time `json:"expiredAt"`
	RespMsgID    *int64     `json:"respMsgId"`
	Match        *string    `json:"match"`
	Reason       *string    `json:"reason"`
	Actor        string     `json:"actor"`
}

// Place is where r stands.
func (r OpsRequest) Place() Place { return Place{At: r.RegisteredAt, ID: r.ID} }

// RequestFilter chooses requests. Zero values choose everything.
type RequestFilter struct {
	Page  // by registered_at
	Kind  string
	State request.State
}

// OpsRequests lists requests.
func (s *Store) OpsRequests(ctx context.Context, tx pgx.Tx, f RequestFilter) ([]OpsRequest, error) {
	if err := freshPlan(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := s.q.OpsRequests(ctx, tx, pgq.OpsRequestsParams{
		BeforeAt: timeOrNil(f.After.At), BeforeID: f.After.ID, Kind: orNil(f.Kind), State: orNil(string(f.State)),
		FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
	})
	if err != nil {
		return nil, wrapped("list requests", err)
	}
	out := make([]OpsRequest, len(rows))
	for i, r := range rows {
		out[i] = OpsRequest(r)
	}
	return out, nil
}

// wrapped classifies an error of the database and says what was being done; nil stays nil.
func wrapped(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, db.Classify(err))
}

func orZeroOf[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}
