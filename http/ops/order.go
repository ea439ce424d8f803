package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
)

// Order is what every operator says with what he wants done; embed it in the body of an action.
type Order struct {
	// Reason is why, for those who read the audit. Needed; at most 500 bytes.
	Reason string `json:"reason"`
	// DryRun asks what would happen: everything is done and taken back.
	DryRun bool `json:"dryRun"`
}

func (o Order) said() Order { return o }

// body is an order as its JSON is read: a struct that embeds Order.
type body interface{ said() Order }

// By is who gives an order, as the audit names him.
type By struct {
	Actor string // a token's name
	Peer  string // where he called from
}

// Result is what became of one thing an order was about.
type Result string

// The closed set of results (contract §8.12).
const (
	Queued   Result = "QUEUED"    // will be done
	Skipped  Result = "SKIPPED"   // may not be done; Why says it
	NotFound Result = "NOT_FOUND" // nobody knows it
)

// Item is what an order did to one thing.
type Item struct {
	ID     int64  `json:"id"`
	Result Result `json:"result"`
	Why    string `json:"why,omitempty"`
}

// Items is the answer to an order about many things.
type Items struct {
	Items  []Item `json:"items"`
	DryRun bool   `json:"dryRun"`
}

// Done is what an action has done in its transaction.
type Done struct {
	Answer any         // for the operator, and the result in the audit
	Wake   []jobs.Role // who has work now: woken in the same transaction
}

// action does what an order asks for, all of it in tx. A *problem.Error refuses the whole order.
type action[B body] func(ctx context.Context, tx pgx.Tx, order B) (Done, error)

// Waker makes sure that work put into our tables is looked at (drain.Waker).
type Waker interface {
	// Wake does so as part of tx.
	Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error
	// Ring saves the wait once tx is committed.
	Ring(roles ...jobs.Role)
}

// Orders are the actions by path: each a POST, for operators only.
func (a *API) Orders() map[string]func(*gin.Context) error {
	return map[string]func(*gin.Context) error{
		"/ops/replay":            a.replay,
		"/ops/maintenance/:task": a.Maintain,
		"/ops/requests":          func(c *gin.Context) error { return serve(a, c, http.StatusAccepted, "requests", a.makeRequest) },
		"/ops/events/replay":     a.replayEvents,
		"/ops/lane/reseed":       a.reseed,
		"/ops/backfill/resume":   a.resume,
	}
}

// serve reads an order, has it carried out and answers with status. It is all an endpoint of an action consists of:
//
//	"/ops/replay": func(c *gin.Context) error { return serve(a, c, http.StatusOK, "replay", a.replay) },
func serve[B body](a *API, c *gin.Context, status int, name string, do action[B]) error {
	return servePrepared(a, c, status, name, func(context.Context, B) (struct{}, error) { return struct{}{}, nil },
		func(ctx context.Context, tx pgx.Tx, order B, _ struct{}) (Done, error) { return do(ctx, tx, order) })
}

// orderTimeout bounds an order. Some move a great many rows.
const orderTimeout = 90 * time.Second

// servePrepared is serve for an action that needs to know something of a foreign system: look asks it before the
// transaction begins.
func servePrepared[B body, P any](
	a *API, c *gin.Context, status int, name string, look func(context.Context, B) (P, error), do func(context.Context, pgx.Tx, B, P) (Done, error),
) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), orderTimeout)
	defer cancel()
	order, err := read[B](c.Request)
	if err != nil {
		return err
	}
	found, err := look(ctx, order)
	if err != nil {
		return err
	}
	caller := access.From(ctx)
	answer, err := carryOut(ctx, a, By{Actor: caller.Actor(), Peer: caller.Peer.String()}, name, order,
		func(ctx context.Context, tx pgx.Tx, order B) (Done, error) { return do(ctx, tx, order, found) })
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, status, answer)
}

// errTakeBack ends the transaction of a dry run.
var errTakeBack = errors.New("dry run")

// carryOut does what the order asks for and audits it, both in one transaction. A dry run and an order refused or failed
// leave their audit row and nothing else.
func carryOut[B body](ctx context.Context, a *API, by By, name string, order B, do action[B]) (any, error) {
	said := order.said()
	scope, err := scopeOf(order)
	if err != nil {
		return nil, err
	}
	row := store.AuditRow{At: a.Now(), Actor: by.Actor, Peer: by.Peer, Action: name, Reason: said.Reason, Scope: scope, DryRun: said.DryRun}
	var done Done
	err = db.InTx(ctx, a.Pool, func(tx pgx.Tx) error {
		if done, err = do(ctx, tx, order); err != nil {
			return err
		}
		if said.DryRun {
			return errTakeBack
		}
		if len(done.Wake) > 0 {
			if err := a.Waker.Wake(ctx, tx, done.Wake...); err != nil {
				return err
			}
		}
		return a.audit(ctx, tx, row, done.Answer)
	})
	switch {
	case err == nil:
		a.Waker.Ring(done.Wake...)
		return done.Answer, nil
	case errors.Is(err, errTakeBack):
		return done.Answer, a.audit(ctx, a.Pool, row, done.Answer)
	}
	return nil, errors.Join(err, a.auditRefused(ctx, row, problem.Of(err)))
}

func (a *API) audit(ctx context.Context, q db.Querier, row store.AuditRow, result any) error {
	var err error
	if row.Result, err = json.Marshal(result); err != nil {
		return fault.Wrap(fault.Infra, "audit "+row.Action, err)
	}
	return a.Store.Audit(ctx, q, row)
}

// refusalTimeout bounds the audit of an order that has failed already, perhaps because its time was over.
const refusalTimeout = 2 * time.Second

func (a *API) auditRefused(ctx context.Context, row store.AuditRow, why *problem.Error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTimeout)
	defer cancel()
	return a.audit(ctx, a.Pool, row, map[string]any{"refused": why.Code, "why": why.Detail})
}

// scopeOf is the order without its reason: what it is about.
func scopeOf(order any) (json.RawMessage, error) {
	b, err := json.Marshal(order)
	if err != nil {
		return nil, fault.Wrap(fault.Infra, "audit", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fault.Wrap(fault.Infra, "audit", err)
	}
	delete(all, "reason")
	delete(all, "dryRun")
	return json.Marshal(all)
}

// Bounds of an order.
const (
	maxOrderBytes  = 1 << 20
	maxReasonBytes = 500
)

// read takes the order out of the request. What it does not understand it refuses: an operator's slip of the pen must not
// be taken for something else.
func read[B body](r *http.Request) (order B, err error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return order, problem.New(problem.UnsupportedMediaType, "the body must not be compressed")
	}
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxOrderBytes))
	if err != nil {
		return order, err
	}
	if bytes.Contains(b, []byte(`\u0000`)) {
		return order, problem.New(problem.BadRequest, "the body holds a NUL")
	}
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	if err := in.Decode(&order); err != nil {
		return order, &problem.Error{Code: problem.BadRequest, Detail: "the body is no such order: " + jsonFault(err), Err: err}
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return order, problem.New(problem.BadRequest, "something follows the order")
	}
	return order, checkReason(order.said().Reason)
}

func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return problem.New(problem.BadRequest, "reason is needed: why is this done?")
	case len(reason) > maxReasonBytes:
		return problem.New(problem.BadRequest, fmt.Sprintf("reason is longer than %d bytes", maxReasonBytes))
	}
	return nil
}

// jsonFault says what is wrong with a body, without Go's words for types.
func jsonFault(err error) string {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var moment *time.ParseError
	switch {
	case errors.As(err, &moment):
		return fmt.Sprintf("%s is no time like 2026-11-30T08:00:00+08:00", moment.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("%s is a %s", kind.Field, kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it is no JSON"
	}
	return strings.TrimPrefix(err.Error(), "json: ") // an unknown field, by name
}
