package ops

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/request"
	"msgexchange/jobs/sis"
)

// Rows of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// page is how every list answers; next is null on the last one.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// paged cuts rows, of which one more was read than asked for, and marks where the next page begins.
func paged[T interface{ Place() store.Place }](rows []T, limit int) page[T] {
	if len(rows) <= limit {
		return page[T]{Items: rows}
	}
	rows = rows[:limit]
	next := param.Place(rows[limit-1].Place()).Mark()
	return page[T]{Items: rows, Next: &next}
}

// which reads what all lists have in common. One row more than asked for tells whether there is a next page.
func which(q *param.Query) store.Page {
	from, to := q.Between()
	return store.Page{From: from, To: to, After: store.Place(q.Place()), Limit: q.Limit(defaultLimit, maxLimit) + 1}
}

// list answers with a page of what read finds.
func list[T interface{ Place() store.Place }](a *API, c *gin.Context, q *param.Query, limit int, read func(tx pgx.Tx) ([]T, error)) error {
	q.NoOthers()
	if err := q.Err(); err != nil {
		return err
	}
	var rows []T
	err := db.InSnapshot(c.Request.Context(), a.Pool, func(tx pgx.Tx) (err error) {
		rows, err = read(tx)
		return err
	})
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, paged(rows, limit-1))
}

// messageItem is a message with its mark beside its state.
type messageItem struct {
	store.OpsMessage
	Mark     store.MarkState `json:"markState"`
	Archived bool            `json:"archived"`
	place    store.Place
}

// Place is where it stands.
func (m messageItem) Place() store.Place { return m.place }

// Messages serves GET /ops/messages: those in work and those in the archive, the newest first.
func (a *API) Messages(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	filter := store.MessageFilter{
		Page:       which(q),
		State:      param.Word(q, "state", message.AllStates()),
		Class:      param.Word(q, "class", fault.AllClasses()),
		Type:       q.Code("type"),
		Subtype:    q.Code("styp"),
		Error:      q.Text("error"),
		Reuse:      param.Word(q, "identityReuse", message.AllReuses()),
		Mark:       param.Word(q, "markState", []store.MarkState{store.MarkOwed, store.MarkAbandoned}),
		Late:       q.Flag("late"),
		MarkFailed: q.Flag("markFailed"),
		Archived:   q.Choice("archived"),
		FLID:       q.ID("flid"),
	}
	return list(a, c, q, filter.Limit, func(tx pgx.Tx) ([]messageItem, error) {
		rows, err := a.Store.OpsMessages(c.Request.Context(), tx, filter)
		items := make([]messageItem, len(rows))
		for i, r := range rows {
			items[i] = messageItem{OpsMessage: r.OpsMessage, Mark: r.Mark(), Archived: r.Archived, place: r.Place()}
		}
		return items, err
	})
}

// Events serves GET /ops/events: those in work and those in the archive, the newest first.
func (a *API) Events(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	filter := store.EventFilter{
		Page:     which(q),
		State:    param.Word(q, "state", outbox.AllStates()),
		Target:   param.Word(q, "target", outbox.AllTargets()),
		Archived: q.Choice("archived"),
		MsgID:    q.ID("msgId"),
		FLID:     q.ID("flid"),
	}
	return list(a, c, q, filter.Limit, func(tx pgx.Tx) ([]store.OpsEvent, error) {
		return a.Store.OpsEvents(c.Request.Context(), tx, filter)
	})
}

// Event serves GET /ops/events/{id}: one event with all of its payload.
func (a *API) Event(c *gin.Context) error {
	id, err := param.PathID(c.Param("id"))
	if err != nil {
		return err
	}
	e, ok, err := a.Store.OpsEvent(c.Request.Context(), a.Pool, id)
	if err != nil {
		return err
	}
	if !ok {
		return problem.New(problem.NotFound, "no such event")
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, e)
}

// holeItem is a hole and how many ids it is wide.
type holeItem struct {
	store.OpsHole
	IDs int64 `json:"ids"`
}

// Place is where it stands: holes go by id.
func (h holeItem) Place() store.Place { return store.Place{Generation: h.Generation, ID: h.FirstID} }

// Holes serves GET /ops/holes: ids that are missing, and those that were passed and are remembered; the highest first.
func (a *API) Holes(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	open, after, limit := q.Choice("open"), store.Place(q.Place()), q.Limit(defaultLimit, maxLimit)+1
	return list(a, c, q, limit, func(tx pgx.Tx) ([]holeItem, error) {
		rows, err := a.Store.OpsHoles(c.Request.Context(), tx, open, after, limit)
		items := make([]holeItem, len(rows))
		for i, r := range rows {
			items[i] = holeItem{OpsHole: r, IDs: r.LastID - r.FirstID + 1}
		}
		return items, err
	})
}

// Requests serves GET /ops/requests, newest first.
func (a *API) Requests(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	filter := store.RequestFilter{Page: which(q), Kind: string(param.Word(q, "kind", sis.AllRequests())), State: param.Word(q, "state", request.AllStates())}
	return list(a, c, q, filter.Limit, func(tx pgx.Tx) ([]store.OpsRequest, error) {
		return a.Store.OpsRequests(c.Request.Context(), tx, filter)
	})
}

// Audit serves GET /ops/audit, newest first.
func (a *API) Audit(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	filter := store.AuditFilter{Page: which(q), Actor: q.Text("actor"), Action: q.Text("action")}
	return list(a, c, q, filter.Limit, func(tx pgx.Tx) ([]store.AuditRow, error) {
		return a.Store.AuditRows(c.Request.Context(), tx, filter)
	})
}
