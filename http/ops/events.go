package ops

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/http/problem"
	"msgexchange/jobs"
	"msgexchange/jobs/outbox"
)

// ReplayEventsOrder names dead events: by id, those in the archive too, or all in work of a target, or of a range of ids, or of
// both.
type ReplayEventsOrder struct {
	Order
	EventIDs    []int64       `json:"eventIds,omitempty"`
	Target      outbox.Target `json:"target,omitempty"`
	FromEventID int64         `json:"fromEventId,omitempty"` // inclusive
	ToEventID   int64         `json:"toEventId,omitempty"`   // inclusive; 0 has no end
}

// maxReplayedEvents bounds one order; More says that it must be given again.
const maxReplayedEvents = 1000

// ReplayedEvents says of each event what became of it.
type ReplayedEvents struct {
	Items
	More bool `json:"more"` // the range holds further dead events
}

func (o ReplayEventsOrder) check() error {
	ranged := o.Target != "" || o.FromEventID != 0 || o.ToEventID != 0
	switch {
	case o.Target != "" && !slices.Contains(outbox.AllTargets(), o.Target):
		return problem.New(problem.BadRequest, fmt.Sprintf("target: want one of %v", outbox.AllTargets()))
	case len(o.EventIDs) > maxReplayedEvents:
		return problem.New(problem.BadRequest, fmt.Sprintf("eventIds: more than %d", maxReplayedEvents))
	case len(o.EventIDs) == 0 && !ranged:
		return problem.New(problem.BadRequest, "which events? eventIds, target, or fromEventId and toEventId are needed")
	case len(o.EventIDs) > 0 && (o.FromEventID != 0 || o.ToEventID != 0):
		return problem.New(problem.BadRequest, "eventIds and a range of ids exclude each other")
	}
	return nil
}

// replayEvents serves POST /ops/events/replay (contract §8.12).
func (a *API) replayEvents(c *gin.Context) error {
	return serve(a, c, http.StatusOK, "events-replay", a.sendAgain)
}

// ReplayEvents carries an order out that did not come by HTTP.
func (a *API) ReplayEvents(ctx context.Context, by By, order ReplayEventsOrder) (ReplayedEvents, error) {
	if err := checkReason(order.Reason); err != nil {
		return ReplayedEvents{}, err
	}
	answer, err := carryOut(ctx, a, by, "events-replay", order, a.sendAgain)
	if err != nil {
		return ReplayedEvents{}, err
	}
	return answer.(ReplayedEvents), nil //nolint:forcetypeassert // sendAgain's own
}

// sendAgain puts dead events back. One on msg goes out as it is, late, under its own id. On schd the payload of old is never
// sent: the state the flight has now takes its place, under a new id, and closes the dead one when it is delivered. The head
// is kept from committing meanwhile, so that the state is the newest and its id the highest (design §10).
func (a *API) sendAgain(ctx context.Context, tx pgx.Tx, o ReplayEventsOrder) (Done, error) {
	if err := o.check(); err != nil {
		return Done{}, err
	}
	if err := lease.Block(ctx, tx, jobs.RoleHead); err != nil {
		return Done{}, err
	}
	ids, more, err := a.meant(ctx, tx, o)
	if err != nil {
		return Done{}, err
	}
	found, err := a.Store.LockEvents(ctx, tx, ids)
	if err != nil {
		return Done{}, err
	}
	answer := ReplayedEvents{Items: Items{Items: make([]Item, len(ids)), DryRun: o.DryRun}, More: more}
	var again []int64
	var states []store.EventHead
	for i, id := range ids {
		e, known := found[id]
		answer.Items.Items[i] = o.judge(id, e, known)
		switch {
		case answer.Items.Items[i].Result != Queued:
		case e.Target == outbox.Schd:
			states = append(states, e)
		default:
			again = append(again, id)
		}
	}
	if err := a.Store.RequeueEvents(ctx, tx, again); err != nil {
		return Done{}, err
	}
	if err := a.Store.SendStates(ctx, tx, states, a.Now()); err != nil {
		return Done{}, err
	}
	return Done{Answer: answer, Wake: []jobs.Role{jobs.RoleMsg, jobs.RoleSchd}}, nil
}

// meant gives the ids an order is about.
func (a *API) meant(ctx context.Context, tx pgx.Tx, o ReplayEventsOrder) (ids []int64, more bool, err error) {
	if len(o.EventIDs) > 0 {
		ids = slices.Clone(o.EventIDs)
		slices.Sort(ids)
		return slices.Compact(ids), false, nil
	}
	to := o.ToEventID
	if to == 0 {
		to = math.MaxInt64
	}
	ids, err = a.Store.DeadEvents(ctx, tx, o.Target, o.FromEventID, to, maxReplayedEvents+1)
	if len(ids) > maxReplayedEvents {
		return ids[:maxReplayedEvents], true, err
	}
	return ids, false, err
}

// judge says what becomes of one event.
func (o ReplayEventsOrder) judge(id int64, e store.EventHead, known bool) Item {
	skip := func(why string) Item { return Item{ID: id, Result: Skipped, Why: why} }
	switch {
	case !known:
		return Item{ID: id, Result: NotFound}
	case o.Target != "" && o.Target != e.Target:
		return skip("its target is " + string(e.Target))
	case e.State != outbox.Dead:
		return skip("it is " + string(e.State))
	case e.NewerWaits != 0:
		return skip(fmt.Sprintf("a newer state of flight %d waits, event %d", e.FLID, e.NewerWaits))
	case e.Target == outbox.Schd:
		return Item{ID: id, Result: Queued, Why: "the state of now goes out in its place"}
	}
	return Item{ID: id, Result: Queued}
}
