package ops

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/http/problem"
	"msgexchange/jobs"
)

// ResumeOrder names the messages whose marks are to be tried again.
type ResumeOrder struct {
	Order
	IDs []int64 `json:"ids"`
}

// maxResumed bounds the ids of one order.
const maxResumed = 10_000

// resume serves POST /ops/backfill/resume: marks given up, or waiting after a failure, are due at once (contract §8.12).
func (a *API) resume(c *gin.Context) error {
	return serve(a, c, http.StatusOK, "backfill-resume", a.resumeMarks)
}

// Resume carries an order out that did not come by HTTP.
func (a *API) Resume(ctx context.Context, by By, order ResumeOrder) (Items, error) {
	if err := checkReason(order.Reason); err != nil {
		return Items{}, err
	}
	answer, err := carryOut(ctx, a, by, "backfill-resume", order, a.resumeMarks)
	if err != nil {
		return Items{}, err
	}
	return answer.(Items), nil //nolint:forcetypeassert // resumeMarks' own
}

func (a *API) resumeMarks(ctx context.Context, tx pgx.Tx, o ResumeOrder) (Done, error) {
	if n := len(o.IDs); n == 0 || n > maxResumed {
		return Done{}, problem.New(problem.BadRequest, fmt.Sprintf("ids: want 1 to %d of them", maxResumed))
	}
	all, err := a.Store.ResumeDebts(ctx, tx, o.IDs, a.Now())
	if err != nil {
		return Done{}, err
	}
	items := make([]Item, len(all))
	for i, r := range all {
		items[i] = Item{ID: r.ID, Result: Skipped, Why: r.Why}
		switch {
		case r.Resumed:
			items[i].Result = Queued
		case !r.Known:
			items[i].Result = NotFound
		}
	}
	return Done{Answer: Items{Items: items, DryRun: o.DryRun}, Wake: []jobs.Role{jobs.RoleBackfill}}, nil
}
