package head

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
)

// textTimeout bounds the reading of one text from the mailbox.
const textTimeout = 8 * time.Second

// unread says that the mailbox did not give the text of a message: nothing of the batch was tried.
type unread struct {
	error
	id int64
}

// Unwrap gives the mailbox's error.
func (u unread) Unwrap() error { return u.error }

// reread gives a text whose copy of ours is gone.
func (h *Head) reread(ctx context.Context, id int64) (text []byte, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, textTimeout)
	defer cancel()
	if text, found, err = h.mailbox.Text(ctx, id); err != nil {
		return nil, false, unread{err, id}
	}
	return text, found, nil
}

// refund takes the present attempts of a batch back when cause is that it could not be read. That we have charged them is known
// to this pod alone, and the next try may be another's, which can reach the mailbox (decision 0023).
func (h *Head) refund(ctx context.Context, f *lease.Fence, batch []store.Unfinished, cause error) error {
	u := unread{}
	if !errors.As(cause, &u) {
		return nil
	}
	h.unread = u.id
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

// askAgain asks for the text that the mailbox did not give the last time, before the batch with it is charged anew. A pod that alone
// is cut off loses the role while it waits for this answer, nearly always, and could not take back then what it has charged.
func (h *Head) askAgain(ctx context.Context, batch []store.Unfinished) error {
	id := h.unread
	if slices.ContainsFunc(batch, func(r store.Unfinished) bool { return r.Pos.ID == id }) {
		if _, _, err := h.reread(ctx, id); err != nil && nobodysFault(ctx, err) {
			return err
		}
	}
	h.unread = 0 // it answers; or what it answers is the message's fault, which is charged
	return nil
}
