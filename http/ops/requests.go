package ops

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/http/access"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

// Requests is where requests to the airport's database are registered.
type Requests interface {
	// Register puts one on record in tx; the open one of its kind expires. request.KindError when the site makes none of that kind.
	Register(ctx context.Context, tx pgx.Tx, kind message.Kind, window request.Window, actor string) (request.Request, error)
	// Kinds lists the kinds that the site makes.
	Kinds() []message.Kind
}

// Asking is what the orders about requests need.
type Asking struct {
	Requests Requests
	Zone     *time.Location // of the airport: times without an offset are in it
	Shadow   bool           // asks for nothing
}

// requestOrder asks for one request to be made.
type requestOrder struct {
	Order
	Kind      string `json:"kind"`
	StartTime string `json:"startTime,omitempty"`
	EndTime   string `json:"endTime,omitempty"`
}

// requestMade is the answer to it.
type requestMade struct {
	ID     int64         `json:"id"`
	Kind   message.Kind  `json:"kind"`
	State  request.State `json:"state"`
	SEQN   int64         `json:"seqn"`
	DryRun bool          `json:"dryRun"`
}

// makeRequest serves POST /ops/requests.
func (a *API) makeRequest(ctx context.Context, tx pgx.Tx, o requestOrder) (Done, error) {
	if a.Asking.Shadow {
		return Done{}, problem.New(problem.ShadowMode, "this is a shadow: it asks for nothing")
	}
	window, err := a.Asking.window(o)
	if err != nil {
		return Done{}, err
	}
	r, err := a.Asking.Requests.Register(ctx, tx, message.Kind(o.Kind), window, access.From(ctx).Actor())
	var kind request.KindError
	switch {
	case errors.As(err, &kind):
		return Done{}, &problem.Error{Code: problem.BadRequest, Detail: kind.Error(), More: map[string]any{"kinds": a.Asking.Requests.Kinds()}}
	case err != nil:
		return Done{}, err
	}
	made := requestMade{ID: r.ID, Kind: r.Kind, State: r.State, SEQN: r.SEQN, DryRun: o.DryRun}
	return Done{Answer: made, Wake: []jobs.Role{jobs.RoleRequest}}, nil
}

// window is what a schedule request asks for; the others have none.
func (a Asking) window(o requestOrder) (w request.Window, err error) {
	if message.Kind(o.Kind) != request.Schedule {
		if o.StartTime != "" || o.EndTime != "" {
			return w, problem.New(problem.BadRequest, "startTime and endTime belong to "+string(request.Schedule)+" only")
		}
		return w, nil
	}
	return param.Window(o.StartTime, o.EndTime, a.Zone)
}
