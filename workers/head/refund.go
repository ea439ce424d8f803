package head

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
)

// textTimeout bounds the reading of one text from the mailbox.
const textTimeout = 8 * time.Second

// unread says that the mailbox did not give the text of a message: nothing of the batch was tried.
type unread struct{ error }

// Unwrap gives the mailbox's error.
func (u unread) Unwrap() error { return u.error }

// reread gives a text whose copy of ours is gone.
func (h *Head) reread(ctx context.Context, id int64) (text []byte, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, textTimeout)
	defer cancel()
	if text, found, err = h.mailbox.Text(ctx, id); err != nil {
		return nil, false, unread{err}
	}
	return text, found, nil
}

// refund takes the present attempts of a batch back when cause is that it could not be read. That we have charged them is known
// to this pod alone, and the next try may be another's, which can reach the mailbox (decision 0023).
func (h *Head) refund(ctx context.Context, f *lease.Fence, batch []store.Unfinished, cause error) error {
	if u := (unread{}); !errors.As(cause, &u) {
		return nil
	}
	ids := make([]int64, len(batch))
	for i, r := range batch {
		ids[i] = r.Pos.ID
	}
	now := h.now()
	if err := f.Tx(ctx, func(tx pgx.Tx) error { return h.store.Refund(ctx, tx, ids, now) }); err != nil {
		return err
	}
	for _, r := range batch {
		delete(h.paid, r.Pos)
	}
	return nil
}
