package ops

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/http/param"
	"msgexchange/http/problem"
)

// Keeper asks for work that is else done by the clock (maintenance.Keeper).
type Keeper interface {
	// Names lists the tasks.
	Names() []string
	// Order inserts a job for a task as part of tx, or finds the one that waits or runs already.
	Order(ctx context.Context, tx pgx.Tx, task string) (jobID int64, err error)
	// Unable says why a run of the task would do nothing as this site is configured; empty: it would.
	Unable(task string) (why string)
}

// Maintenance serves GET /ops/maintenance: how the last run of each task went, and what it found.
func (a *API) Maintenance(c *gin.Context) error {
	rows, err := a.Store.Periodics(c.Request.Context(), a.Pool)
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, page[store.Periodic]{Items: rows})
}

// Consistency serves GET /ops/consistency: what the sentinel found and has not found mended since, newest first.
func (a *API) Consistency(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	after, limit := q.Place(), q.Limit(defaultLimit, maxLimit)+1
	return list(a, c, q, limit, func(tx pgx.Tx) ([]store.Difference, error) {
		return a.Store.OpsDifferences(c.Request.Context(), tx, after.ID, limit)
	})
}

// Maintain serves POST /ops/maintenance/{task}: it runs now, by whoever does such work, once with a run that waits already.
func (a *API) Maintain(c *gin.Context) error {
	task := c.Param("task")
	if !slices.Contains(a.Keeper.Names(), task) {
		return problem.New(problem.NotFound, "there is no such task; there are "+strings.Join(a.Keeper.Names(), ", "))
	}
	return serve(a, c, http.StatusAccepted, "maintenance/"+task, func(ctx context.Context, tx pgx.Tx, order Order) (Done, error) {
		if why := a.Keeper.Unable(task); why != "" {
			return Done{}, problem.New(problem.Conflict, why)
		}
		id, err := a.Keeper.Order(ctx, tx, task)
		if err != nil {
			return Done{}, err
		}
		if order.DryRun { // the job goes with the transaction
			return Done{Answer: gin.H{"dryRun": true}}, nil
		}
		return Done{Answer: gin.H{"jobId": id}}, nil
	})
}
