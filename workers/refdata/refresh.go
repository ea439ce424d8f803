// Package refdata keeps the lists of reference data that a neighbour serves over HTTP as they are there (design §9). A list
// changes as a whole or not at all; while the neighbour is away, or answers nonsense, what we have stays, with its age.
package refdata

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/refdata"
)

// Neighbour serves lists.
type Neighbour interface {
	// Fetch asks for what is at path. validator is that of the answer we have; with one the answer may be that nothing has
	// changed. Errors: fault.Outage when the neighbour was away, fault.Protocol when its answer is none.
	Fetch(ctx context.Context, path, validator string) (refdata.Answer, error)
}

// Refresher refreshes lists. Safe for concurrent use: of two at the same list one waits for the other.
type Refresher struct {
	Endpoints map[string]refdata.Endpoint // by the name of the list
	Neighbour Neighbour
	Pool      *pgxpool.Pool
	Store     *store.Store
	Log       *slog.Logger
	Now       func() time.Time
}

// Lists names the lists that are refreshed.
func (r *Refresher) Lists() []string { return slices.Sorted(maps.Keys(r.Endpoints)) }

// Refresh asks for one list and puts it in place of what we have. Running it twice changes nothing more. A failure is noted
// beside the list, and given back so that whoever runs it tries again.
func (r *Refresher) Refresh(ctx context.Context, rtype string) (store.Applied, error) {
	e, known := r.Endpoints[rtype]
	if !known {
		return store.Applied{}, fmt.Errorf("refresh: there is no list %q", rtype)
	}
	done, err := r.refresh(ctx, e)
	if err == nil {
		r.Log.InfoContext(ctx, "reference data refreshed", "rtype", rtype, "batch_id", done.BatchID, "changed", done.Changed, "removed", done.Removed)
		return done, nil
	}
	r.Log.WarnContext(ctx, "reference data not refreshed", "rtype", rtype, "error", fault.Text(err))
	if ctx.Err() != nil {
		return done, err
	}
	noted := db.InTx(ctx, r.Pool, func(tx pgx.Tx) error {
		return r.Store.FailReference(ctx, tx, rtype, fault.Text(err), r.Now())
	})
	if noted != nil {
		r.Log.WarnContext(ctx, "failed refresh not noted", "rtype", rtype, "error", fault.Text(noted))
	}
	return done, fault.Wrap(fault.Infra, "refresh "+rtype, err)
}

func (r *Refresher) refresh(ctx context.Context, e refdata.Endpoint) (done store.Applied, err error) {
	stored, err := r.Store.ReferenceValidator(ctx, r.Pool, e.RType)
	if err != nil {
		return done, err
	}
	// Only that of an answer to the same question: the table of endpoints may have changed since.
	mark := e.String() + "\n"
	validator, same := strings.CutPrefix(stored, mark)
	if !same {
		validator = ""
	}
	answer, err := r.Neighbour.Fetch(ctx, e.Path, validator)
	if err != nil {
		return done, err
	}
	now := r.Now()
	if answer.Unchanged {
		return done, db.InTx(ctx, r.Pool, func(tx pgx.Tx) error { return r.Store.ConfirmReference(ctx, tx, e.RType, stored, now) })
	}
	batch, err := e.Read(answer.Body)
	if err != nil {
		return done, err
	}
	if validator = answer.Validator; validator != "" {
		validator = mark + validator
	}
	err = db.InTx(ctx, r.Pool, func(tx pgx.Tx) error {
		done, err = r.Store.ApplyReference(ctx, tx, batch, validator, now)
		return err
	})
	return done, err
}
