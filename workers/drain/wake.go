package drain

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
)

// Inserter is what a waker needs of a River client. Not its fast twin: that one copies, and fails on a unique job that exists.
type Inserter interface {
	InsertManyTx(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
}

// Waker makes sure that work put into our tables is looked at. Safe for concurrent use.
type Waker struct {
	lane   string
	insert func(ctx context.Context, tx pgx.Tx, wakes []wake) error
	bells  map[jobs.Role]chan struct{}
}

type wake struct {
	role jobs.Role
	wake jobs.Wake
}

// NewWaker makes the waker of a lane.
func NewWaker(lane string, in Inserter) *Waker {
	w := &Waker{lane: lane, bells: map[jobs.Role]chan struct{}{}}
	for _, r := range jobs.AllRoles() {
		w.bells[r] = make(chan struct{}, 1)
	}
	w.insert = func(ctx context.Context, tx pgx.Tx, wakes []wake) error {
		params := make([]river.InsertManyParams, len(wakes))
		for i, k := range wakes {
			params[i] = river.InsertManyParams{Args: jobs.For(k.role, k.wake)}
		}
		if _, err := in.InsertManyTx(ctx, tx, params); err != nil {
			return fmt.Errorf("insert wake-ups: %w", err)
		}
		return nil
	}
	return w
}

// Wake makes sure, as part of tx, that the roles look at what tx has put into our tables: by a drain that is open and will
// look again before it closes, or by a new job. Call it after the writes or before, but in the same transaction (O3).
func (w *Waker) Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error {
	if err := lease.LockWakeShared(ctx, tx, w.lane, roles); err != nil {
		return err
	}
	// A statement of its own: its snapshot must be younger than the lock.
	rows, err := lease.Read(ctx, tx, w.lane, roles)
	if err != nil {
		return err
	}
	var wakes []wake
	for _, s := range rows {
		if !s.Open() {
			wakes = append(wakes, wake{s.Role, jobs.Wake{Lane: w.lane, Epoch: s.Epoch}})
		}
	}
	if len(wakes) == 0 {
		return nil
	}
	return w.insert(ctx, tx, wakes)
}

// Ring tells drains of this pod that are waiting to look now. Call it after the commit; it saves the wait, nothing hangs on it.
func (w *Waker) Ring(roles ...jobs.Role) {
	for _, r := range roles {
		select {
		case w.bells[r] <- struct{}{}:
		default: // already ringing
		}
	}
}

func (w *Waker) bell(r jobs.Role) <-chan struct{} { return w.bells[r] }

// panicked turns what a step threw into an error with the stack.
func panicked(p any) error {
	return fault.New(fault.Infra, "work", "panic: %v\n%s", p, debug.Stack())
}
