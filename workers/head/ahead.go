package head

import (
	"context"
	"slices"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
)

// ahead is the batch after the one at work, read while that is committed, so that a backlog does not wait for it. Only reading
// is done ahead: its attempts are charged and it is decoded in its turn (O5), if it is next then.
type ahead struct {
	rows  []store.Unfinished
	texts map[message.Position]store.Raw
}

// readAhead begins to read what follows a full batch; the caller must wait for done, and only then look at the result. What could
// not be read ahead is read in its turn.
func (h *Head) readAhead(ctx context.Context, batch []store.Unfinished) (done <-chan ahead) {
	result := make(chan ahead, 1)
	if len(batch) < h.config.Batch || len(batch) == 1 {
		result <- ahead{}
		return result
	}
	now, after := h.now(), batch[len(batch)-1].Pos
	go func() {
		var a ahead
		defer func() { result <- a }()
		rows, err := h.store.Head(ctx, h.pool, h.config.Lane, after.ID, h.config.Batch)
		if err != nil || len(rows) == 0 || slices.ContainsFunc(rows, h.alone) || rows[0].NextAttempt.After(now) {
			return
		}
		rows = rows[:fitting(rows)]
		if texts, err := h.store.RawTexts(ctx, h.pool, positions(rows)); err == nil {
			a = ahead{rows: rows, texts: texts}
		}
	}()
	return result
}

// next gives the messages in front, as they were read ahead if they still are what is in front: only we change unfinished ones,
// but others may have come late or been put back, before them or between them.
func (h *Head) next(ctx context.Context, f *lease.Fence) (ahead, error) {
	a, of := h.ahead, h.aheadOf
	h.ahead, h.aheadOf = ahead{}, nil
	if len(a.rows) > 0 && of == f {
		first, err := h.store.Head(ctx, h.pool, h.config.Lane, 0, 1)
		if err != nil {
			return ahead{}, err
		}
		if len(first) == 1 && first[0].Pos == a.rows[0].Pos && first[0].Attempts == a.rows[0].Attempts {
			n, err := h.store.UnfinishedAmong(ctx, h.pool, a.rows[0].Pos.ID, a.rows[len(a.rows)-1].Pos.ID)
			if err != nil || n == len(a.rows) {
				return a, err
			}
		}
	}
	rows, err := h.store.Head(ctx, h.pool, h.config.Lane, 0, h.config.Batch)
	return ahead{rows: rows}, err
}

// fitting is how many of the rows may be in memory together; one always is.
func fitting(rows []store.Unfinished) (n int) {
	var bytes int64
	for i, r := range rows {
		if bytes += r.SizeBytes; i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(rows)
}

func positions(rows []store.Unfinished) []message.Position {
	at := make([]message.Position, len(rows))
	for i, r := range rows {
		at[i] = r.Pos
	}
	return at
}
