package poll

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
)

// Registrar makes a row that our own endpoint has just put into the mailbox known at once. It never moves the watermark:
// the head takes the message when the poller has passed everything below it, and if registering fails the poller finds
// the row (design §4).
type Registrar struct {
	Lane  string
	Store *store.Store
	Waker Waker
	Now   func() time.Time
}

// Register makes the row a PENDING message, as part of tx, and wakes the poller and the head. Ring after the commit.
// A row that is not above the watermark of a running lane is left to the poller.
func (r Registrar) Register(ctx context.Context, tx pgx.Tx, id int64, text string, receivedAt time.Time) error {
	m := inbox.Message{Row: inbox.Row{ID: id, ReceivedAt: receivedAt}, Text: text, Size: len(text)}
	if _, err := r.Store.Register(ctx, tx, r.Lane, r.Store.Incoming(m), r.Now()); err != nil {
		return err
	}
	return r.Waker.Wake(ctx, tx, jobs.RolePoll, jobs.RoleHead)
}

// Ring tells the workers of this pod that Register has been committed.
func (r Registrar) Ring() { r.Waker.Ring(jobs.RolePoll, jobs.RoleHead) }
