// Package flights answers about flight state, always from one snapshot of our own PostgreSQL (contract §4, §8.3). It only
// reads.
package flights

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/flight"
)

// API serves the flight routes. Make it with New; safe for concurrent use.
type API struct {
	pool    *pgxpool.Pool
	store   *store.Store
	zone    *time.Location
	streams chan struct{}
}

// maxStreams is how many long answers are written at a time: each holds a connection and a snapshot for as long as its
// reader takes, and the pool is for the pipeline first.
const maxStreams = 2

// New makes the routes; zone is the airport's, in which times are written.
func New(pool *pgxpool.Pool, st *store.Store, zone *time.Location) *API {
	return &API{pool: pool, store: st, zone: zone, streams: make(chan struct{}, maxStreams)}
}

// Rows of a page.
const (
	allLimit    = 5000
	maxAllLimit = 20_000
	limit       = 100
	maxLimit    = 1000
)

// filter reads the parameters all lists have.
func filter(q *param.Query, def, most int) store.FlightFilter {
	f := store.FlightFilter{OperationDay: flight.Day(q.Day("operationDay")), Limit: q.Limit(def, most)}
	if micros, flid, ok := q.Cursor(); ok {
		f.After = store.FlightCursor{SODT: time.UnixMicro(micros).UTC(), FLID: flid}
	}
	return f
}

func cursor(c *store.FlightCursor) string { return param.Mark(c.SODT.UnixMicro(), c.FLID) }

// All serves GET /all/flights: a ResponseDto with the live flights that are no code-share children.
func (a *API) All(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	f := filter(q, allLimit, maxAllLimit)
	f.Masters = true
	if err := q.Err(); err != nil {
		return err
	}
	return a.stream(c, f, func(page store.FlightPage, tx pgx.Tx) (before, after string, err error) {
		at, err := a.store.ConsistencyPoint(c.Request.Context(), tx)
		if err != nil {
			return "", "", err
		}
		c.Header("X-Consistency-Point", at.String())
		if page.Next != nil {
			c.Header("X-Next-Cursor", cursor(page.Next))
		}
		return problem.DtoOpen + "[", "]" + problem.DtoClose, nil
	})
}

// Find serves GET /flights: live flights that have in common what the parameters say.
func (a *API) Find(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	f := filter(q, limit, maxLimit)
	f.FLNO, f.MVIN, f.Stand, f.Gate = q.Text("flno"), q.Text("mvin"), q.Text("stand"), q.Text("gate")
	q.NoOthers()
	if err := q.Err(); err != nil {
		return err
	}
	return a.stream(c, f, func(page store.FlightPage, _ pgx.Tx) (before, after string, err error) {
		next := "null"
		if page.Next != nil {
			next = `"` + cursor(page.Next) + `"`
		}
		return `{"flights":[`, `],"next":` + next + `}`, nil
	})
}

// stream writes a page of flights from one snapshot, a few at a time. Headers and what stands around the flights come from
// frame, which is called once the page is known and before anything is written.
func (a *API) stream(c *gin.Context, f store.FlightFilter, frame func(store.FlightPage, pgx.Tx) (before, after string, err error)) error {
	ctx := c.Request.Context()
	leave, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hung := time.AfterFunc(answerTimeout, func() { cancel(context.DeadlineExceeded) })
	defer hung.Stop()
	err = db.InSnapshot(ctx, a.pool, func(tx pgx.Tx) error {
		page, err := a.store.FindFlights(ctx, tx, f)
		if err != nil {
			return err
		}
		before, after, err := frame(page, tx)
		if err != nil {
			return err
		}
		w := newWriter(c.Writer, before)
		err = a.store.EachFlight(ctx, tx, page.FLIDs, func(f *flight.Flight) error {
			hung.Reset(answerTimeout)
			return w.add(func(b []byte) []byte { return flight.AppendJSON(b, f, a.zone) })
		})
		if err != nil {
			return fmt.Errorf("stream flights: %w", err)
		}
		return w.close(after)
	})
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &problem.Error{Code: problem.Unavailable, Detail: "the database does not answer", Err: err}
	}
	return err
}

const (
	// enterTimeout is how long a caller waits for others to be done.
	enterTimeout = 5 * time.Second
	// answerTimeout is how long the database may leave us without an answer; more than writing a piece may take.
	answerTimeout = 5 * time.Second
)

// enter waits for a place among the streams.
func (a *API) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, enterTimeout)
	defer cancel()
	select {
	case a.streams <- struct{}{}:
		return func() { <-a.streams }, nil
	case <-ctx.Done():
		return nil, &problem.Error{Code: problem.Unavailable, Detail: "too many lists are being read; try again", Err: ctx.Err()}
	}
}

// One serves GET /flights/{flid}: the flight, and which message set each of its fields.
func (a *API) One(c *gin.Context) error {
	flid, err := param.PathID(c.Param("flid"))
	if err != nil {
		return err
	}
	f, err := a.store.Flight(c.Request.Context(), a.pool, flid)
	switch {
	case err != nil:
		return err
	case f == nil:
		return a.swept(c.Request.Context(), flid)
	case !f.Live():
		return &problem.Error{Code: problem.Gone, Detail: "the flight has been deleted", More: map[string]any{
			"deletedAt": f.DeletedAt.In(a.zone), "messageId": f.DeletedBy,
		}}
	}
	b := flight.AppendJSON([]byte(`{"flight":`), f, a.zone)
	b = flight.AppendProvenance(append(b, `,"provenance":`...), f)
	c.Data(http.StatusOK, "application/json", append(b, '}'))
	return nil
}

// swept answers for a flight that is no longer kept here, or never was.
func (a *API) swept(ctx context.Context, flid int64) error {
	lives, err := a.store.SweptLives(ctx, a.pool, flid)
	switch {
	case err != nil:
		return err
	case len(lives) == 0:
		return problem.New(problem.NotFound, "no such flight")
	}
	last := lives[0]
	more := map[string]any{"sweptAt": last.SweptAt, "rule": last.Rule, "messageId": last.Last}
	if last.DeletedAt != nil {
		more["deletedAt"] = last.DeletedAt
	}
	return &problem.Error{Code: problem.Gone, Detail: "the flight is over and in the history: see its history", More: more}
}

// History serves GET /flights/{flid}/history: what messages did to the flight, the last first; also of a deleted flight. The
// first page has, next to it, what is kept of it from before it was swept.
func (a *API) History(c *gin.Context) error {
	flid, err := param.PathID(c.Param("flid"))
	if err != nil {
		return err
	}
	q := param.Of(c.Request.URL.Query())
	before, _, _ := q.Cursor()
	most := q.Limit(limit, maxLimit)
	if err := q.Err(); err != nil {
		return err
	}
	all, known, err := a.store.History(c.Request.Context(), a.pool, flid, before, most+1) // one more tells whether there is more
	switch {
	case err != nil:
		return err
	case !known:
		return problem.New(problem.NotFound, "no such flight")
	}
	page := historyPage{Items: all}
	if before == 0 {
		if page.Swept, err = a.store.SweptLives(c.Request.Context(), a.pool, flid); err != nil {
			return err
		}
	}
	if len(all) > most {
		page.Items = all[:most]
		next := param.Mark(all[most-1].ID, 0)
		page.Next = &next
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, page)
}

// historyPage is how History answers; next is null on the last page.
type historyPage struct {
	Items []store.FlightChange `json:"items"`
	Next  *string              `json:"next"`
	Swept []store.SweptLife    `json:"swept,omitempty"` // on the first page only
}
