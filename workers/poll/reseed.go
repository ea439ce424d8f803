package poll

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/jobs/inbox"
)

// Reseeder begins a lane anew with the next generation of ids, at an operator's order (contract §8.10): the mailbox was
// emptied or restored, and ids are given out again.
type Reseeder struct {
	Lane    string
	Store   *store.Store
	Mailbox Mailbox
	Server  Server
	Now     func() time.Time
}

// Look reads in the mailbox where the lane would begin. No transaction of ours may be open meanwhile. An id above the
// highest there is, a slip of the pen, is refused with inbox.ErrAhead: the lane would skip all that comes up to it, while
// every check says that it is well.
func (r Reseeder) Look(ctx context.Context, from inbox.Cutover) (inbox.Start, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	extent, step, err := r.Server.Facts(ctx)
	if err != nil {
		return inbox.Start{}, err
	}
	start, err := startOf(ctx, r.Mailbox, from, extent, step, r.Now())
	if err == nil && start.W > extent.Max {
		return inbox.Start{}, fmt.Errorf("%w; the highest is %d", inbox.ErrAhead, extent.Max)
	}
	return start, err
}

// Reseed begins the lane there, all of it in tx; the caller wakes the poller in tx too. It is refused with
// store.ErrUnfinished while a message is not finished, and with store.ErrMarking while marks are being written, which is
// over within seconds. A crash leaves everything as it was; a second reseed begins one more generation.
func (r Reseeder) Reseed(ctx context.Context, tx pgx.Tx, start inbox.Start) (store.Closed, error) {
	return r.Store.ReseedInbox(ctx, tx, r.Lane, start, r.Now())
}
