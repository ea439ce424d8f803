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
	"msgexchange/http/problem"
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
	// Replaying is for orders to put messages back, and for whose identity a message has.
	Replaying Replaying
	// TextsKept is how long texts are kept (raw.retention).
	TextsKept time.Duration
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
