package drain

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
)

// attend looks after this pod's place in a role: it comes in again when it may, and takes the role from a pod that offers it when
// the neighbour answers us. The neighbour is asked beside the looks, which must not wait for it.
func (w *Watcher) attend(ctx context.Context, s lease.Status) error {
	p := w.Places[s.Role]
	if p == nil {
		return nil
	}
	troubled := s.Troubled && !strings.HasPrefix(s.Holder, w.Pod+"/")
	if p.ask(troubled) {
		w.asks.Go(func() {
			defer p.asked()
			if p.reach(ctx) != nil {
				return
			}
			p.well(ctx)
			if !troubled {
				return
			}
			if err := w.relieve(ctx, s); err != nil && !errors.Is(err, errNotRenewed) && ctx.Err() == nil {
				w.Log.WarnContext(ctx, "role not taken", "role", s.Role, "error", fault.Text(err))
			}
		})
	}
	return p.settle()
}

// relieve gives the role a new epoch and a wake-up for it, which the pod that offers it does not take.
func (w *Watcher) relieve(ctx context.Context, s lease.Status) error {
	return w.renew(ctx, s, func(tx pgx.Tx) (int64, bool, error) { return lease.Relieve(ctx, tx, w.Lane, s) }, "troubled_holder")
}

// takeOver ends the epoch of a holder that shows no life.
func (w *Watcher) takeOver(ctx context.Context, s lease.Status) error {
	err := w.renew(ctx, s, func(tx pgx.Tx) (int64, bool, error) { return lease.Advance(ctx, tx, w.Lane, s) }, "silent_holder")
	if errors.Is(err, errNotRenewed) {
		return nil
	}
	if err == nil {
		delete(w.seen, s.Role)
		if p := w.Places[s.Role]; p != nil {
			p.comeBack()
		}
	}
	return err
}

// errNotRenewed says that the role has no work that somebody may do, or its holder lives after all.
var errNotRenewed = errors.New("the epoch goes on")

// renew ends the epoch that was seen and wakes the role in the next one.
func (w *Watcher) renew(ctx context.Context, s lease.Status, advance func(tx pgx.Tx) (int64, bool, error), holder string) error {
	return db.InTx(ctx, w.Pool, func(tx pgx.Tx) error {
		pending, err := w.Roles[s.Role].Pending(ctx, tx)
		if err != nil || !pending {
			return cmp.Or(err, errNotRenewed)
		}
		if paused, err := w.isPaused(ctx, tx, s.Role); err != nil || paused {
			return cmp.Or(err, errNotRenewed)
		}
		epoch, ok, err := advance(tx)
		if err != nil || !ok {
			return cmp.Or(err, errNotRenewed)
		}
		w.Log.WarnContext(ctx, "lease taken over", "role", s.Role, "epoch", epoch, holder, s.Holder)
		return w.Waker.insert(ctx, tx, []wake{{s.Role, jobs.Wake{Lane: w.Lane, Epoch: epoch}}})
	})
}
