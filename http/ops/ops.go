// Package ops shows operators what the pipeline does: where it stands, each message and each event with what became of it
// (contract §4, §8.12), and does what they order: each order with its reason, its result item by item, and its row in the
// audit, written in the transaction that does it.
package ops

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// API serves /ops/…. Safe for concurrent use.
type API struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Now   func() time.Time

	// For orders only:
	Waker  Waker
	Keeper Keeper
	Lane   Reseeder
	// Asking is for orders about requests.
	Asking Asking
	// Replaying is for orders to put messages back.
	Replaying Replaying
}

// Rows of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Targets of events (contract §8.1).
type target string

func allTargets() []target { return []target{"KAFKA:msg", "KAFKA:schd"} }

type eventState string

func allEventStates() []eventState { return []eventState{"PENDING", "SENT", "DEAD"} }

// page is how every list answers; next is null on the last one.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// paged cuts rows, of which one more was read than asked for, and marks where the next page begins.
func paged[T any](rows []T, limit int, id func(T) int64) page[T] {
	if len(rows) <= limit {
		return page[T]{Items: rows}
	}
	rows = rows[:limit]
	next := param.Mark(id(rows[limit-1]), 0)
	return page[T]{Items: rows, Next: &next}
}

// Read gives the summary, all its numbers of one moment.
func (a *API) Read(ctx context.Context) (store.OpsSummary, error) {
	var out store.OpsSummary
	err := db.InSnapshot(ctx, a.Pool, func(tx pgx.Tx) (err error) {
		out, err = a.Store.OpsSummary(ctx, tx, a.Now())
		return err
	})
	return out, err
}

// Summary serves GET /ops/summary.
func (a *API) Summary(c *gin.Context) error {
	out, err := a.Read(c.Request.Context())
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, out)
}

// messageItem is a message with its mark beside its state.
type messageItem struct {
	store.OpsMessage
	Mark store.MarkState `json:"markState"`
}

// messageView is one message with its text; null once raw.retention is over, and when it is withheld: a text about persons is
// an operator's.
type messageView struct {
	messageItem
	Archived bool    `json:"archived"`
	Text     *string `json:"text"`
	Withheld bool    `json:"withheld"`
}

// Messages serves GET /ops/messages, newest first.
func (a *API) Messages(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	before, _, _ := q.Cursor()
	limit := q.Limit(defaultLimit, maxLimit)
	filter := store.OpsFilter{
		State: string(param.Word(q, "state", message.AllStates())),
		Class: string(param.Word(q, "class", fault.AllClasses())),
		From:  q.Time("from"), To: q.Time("to"), Before: before, Limit: limit + 1,
	}
	if err := q.Err(); err != nil {
		return err
	}
	rows, err := a.Store.OpsMessages(c.Request.Context(), a.Pool, filter)
	if err != nil {
		return err
	}
	items := make([]messageItem, len(rows))
	for i, r := range rows {
		items[i] = messageItem{r, r.Mark()}
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, paged(items, limit, func(m messageItem) int64 { return m.MsgID }))
}

// Message serves GET /ops/messages/{id}.
func (a *API) Message(c *gin.Context) error {
	id, err := param.PathID(c.Param("id"))
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	var view messageView
	err = db.InSnapshot(ctx, a.Pool, func(tx pgx.Tx) error {
		m, archived, ok, err := a.Store.OpsMessage(ctx, tx, id)
		if err != nil {
			return err
		}
		if !ok {
			return problem.New(problem.NotFound, "no such message")
		}
		view = messageView{messageItem: messageItem{m, m.Mark()}, Archived: archived}
		view.Text, err = a.text(ctx, tx, message.Position{Generation: m.Generation, ID: m.MsgID})
		return err
	})
	if err != nil {
		return err
	}
	if view.Text != nil && sis.AboutPersons(*view.Text) && access.From(ctx).May(access.Operator) != nil {
		view.Text, view.Withheld = nil, true
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, view)
}

// Events serves GET /ops/events, newest first.
func (a *API) Events(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	before, _, _ := q.Cursor()
	limit := q.Limit(defaultLimit, maxLimit)
	filter := store.OpsFilter{
		State:  string(param.Word(q, "state", allEventStates())),
		Target: string(param.Word(q, "target", allTargets())),
		MsgID:  q.ID("msgId"), FLID: q.ID("flid"),
		From: q.Time("from"), To: q.Time("to"), Before: before, Limit: limit + 1,
	}
	if err := q.Err(); err != nil {
		return err
	}
	rows, err := a.Store.OpsEvents(c.Request.Context(), a.Pool, filter)
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, paged(rows, limit, func(e store.OpsEvent) int64 { return e.EventID }))
}

// Audit serves GET /ops/audit, newest first.
func (a *API) Audit(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	before, _, _ := q.Cursor()
	limit := q.Limit(defaultLimit, maxLimit)
	filter := store.AuditFilter{
		Actor: q.Text("actor"), Action: q.Text("action"), From: q.Time("from"), To: q.Time("to"), Before: before, Limit: limit + 1,
	}
	if err := q.Err(); err != nil {
		return err
	}
	rows, err := a.Store.AuditRows(c.Request.Context(), a.Pool, filter)
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, paged(rows, limit, func(r store.AuditRow) int64 { return r.ID }))
}
