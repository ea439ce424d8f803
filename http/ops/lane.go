package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/http/problem"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
)

// Reseeder begins a lane anew with the next generation of ids (poll.Reseeder).
type Reseeder interface {
	// Look reads in the mailbox where the lane would begin. No transaction of ours may be open meanwhile. inbox.ErrAhead
	// refuses an id that is above all there are.
	Look(ctx context.Context, from inbox.Cutover) (inbox.Start, error)
	// Reseed begins it there, in tx. store.ErrUnfinished and store.ErrMarking refuse it.
	Reseed(ctx context.Context, tx pgx.Tx, start inbox.Start) (store.Closed, error)
}

// reseedOrder says where the next generation of ids begins.
type reseedOrder struct {
	Order
	Watermark place `json:"watermark"`
}

// place is a Cutover as an order writes it: a name or an id, and an id also as a JSON number, as ids are written elsewhere.
type place inbox.Cutover

// UnmarshalJSON reads either form; whether the place is one is asked later.
func (p *place) UnmarshalJSON(b []byte) error {
	var id json.Number // takes a text too, if it is a number
	if err := json.Unmarshal(b, &id); err == nil {
		*p = place(id)
		return nil
	}
	return json.Unmarshal(b, (*string)(p))
}

// reseedAnswer is what a reseed did.
type reseedAnswer struct {
	Generation     int32 `json:"generation"` // the new one
	Watermark      int64 `json:"watermark"`  // only ids above it are taken
	Archived       int64 `json:"archived"`   // messages of the generations before
	MarksAbandoned int64 `json:"marksAbandoned"`
	DryRun         bool  `json:"dryRun"`
}

// reseed serves POST /ops/lane/reseed (contract §8.10).
func (a *API) reseed(c *gin.Context) error {
	return servePrepared(a, c, http.StatusOK, "lane-reseed", a.lookWhereToBegin, a.beginAnew)
}

// lookWhereToBegin asks the mailbox, before the transaction.
func (a *API) lookWhereToBegin(ctx context.Context, o reseedOrder) (inbox.Start, error) {
	from := inbox.Cutover(o.Watermark)
	if _, err := from.Watermark(inbox.Extent{}); err != nil || from == "" {
		return inbox.Start{}, problem.New(problem.BadRequest, "watermark: want min, zero, max or an id")
	}
	start, err := a.Lane.Look(ctx, from)
	if errors.Is(err, inbox.ErrAhead) {
		return start, &problem.Error{Code: problem.Conflict, Detail: fmt.Sprintf("watermark: %v", err), Err: err}
	}
	return start, err
}

func (a *API) beginAnew(ctx context.Context, tx pgx.Tx, o reseedOrder, start inbox.Start) (Done, error) {
	closed, err := a.Lane.Reseed(ctx, tx, start)
	switch {
	case errors.Is(err, store.ErrUnfinished), errors.Is(err, store.ErrMarking):
		return Done{}, &problem.Error{Code: problem.Conflict, Detail: fmt.Sprintf("not now: %v; try again", err), Err: err}
	case err != nil:
		return Done{}, err
	}
	answer := reseedAnswer{
		Generation: closed.Generation, Watermark: start.W, Archived: closed.Archived, MarksAbandoned: closed.Abandoned, DryRun: o.DryRun,
	}
	return Done{Answer: answer, Wake: []jobs.Role{jobs.RolePoll}}, nil
}
