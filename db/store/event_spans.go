package store

import (
	"context"
	"fmt"
	"slices"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/outbox"
)

// EventsWait says whether any event of a target may wait, also one in backoff: whoever then looks and finds none has corrected
// it. Those up to after are not looked at.
func (s *Store) EventsWait(ctx context.Context, q db.Querier, t outbox.Target, after int64) (bool, error) {
	first, err := s.q.EventsWait(ctx, q, pgq.EventsWaitParams{Target: string(t), After: after})
	return len(first) > 0, db.Classify(err)
}

// PendingEvents gives the oldest events of a target that are not sent, in order. Those up to after are not looked at.
func (s *Store) PendingEvents(ctx context.Context, q db.Querier, t outbox.Target, after int64, limit int) ([]Queued, error) {
	rows, err := inSpans(ctx, s, q, t, after, limit, func(firsts, lasts []int64, most int32) ([]pgq.PendingEventsRow, error) {
		return s.q.PendingEvents(ctx, q, pgq.PendingEventsParams{Firsts: firsts, Lasts: lasts, Target: string(t), MaxRows: most})
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", db.Classify(err))
	}
	out := make([]Queued, len(rows))
	for i, r := range rows {
		out[i] = queued(r)
	}
	return out, nil
}

// WaitingEvents gives the oldest events of a target that are not sent, in order, without their content.
func (s *Store) WaitingEvents(ctx context.Context, q db.Querier, t outbox.Target, limit int) ([]QueuedID, error) {
	rows, err := inSpans(ctx, s, q, t, 0, limit, func(firsts, lasts []int64, most int32) ([]pgq.WaitingEventsRow, error) {
		return s.q.WaitingEvents(ctx, q, pgq.WaitingEventsParams{Firsts: firsts, Lasts: lasts, Target: string(t), MaxRows: most})
	})
	if err != nil {
		return nil, fmt.Errorf("read waiting events: %w", db.Classify(err))
	}
	out := make([]QueuedID, len(rows))
	for i, r := range rows {
		out[i] = QueuedID{ID: r.EventID, FLID: r.Flid, NextAttempt: orZero(r.NextAttemptAt), CreatedAt: r.CreatedAt}
	}
	return out, nil
}

// inSpans reads the first limit events that wait after one, run of spans by run of spans; one run has enough, nearly always.
// Spans in which it finds none it takes out of the way.
func inSpans[R any](ctx context.Context, s *Store, q db.Querier, t outbox.Target, after int64, limit int,
	read func(firsts, lasts []int64, most int32) ([]R, error),
) (all []R, err error) {
	for len(all) < limit {
		rows, err := s.q.EventSpans(ctx, q, pgq.EventSpansParams{Target: string(t), After: after, MaxRows: int32(limit)})
		if err != nil {
			return nil, err
		}
		spans := make([]outbox.Span, len(rows))
		for i, r := range rows {
			spans[i] = outbox.Span{First: r.FirstID, Last: r.LastID, Amount: int64(r.Amount)}
		}
		runs, used := outbox.Runs(spans, after, int64(limit-len(all)))
		if used == 0 {
			break
		}
		firsts, lasts := make([]int64, len(runs)), make([]int64, len(runs))
		for i, r := range runs {
			firsts[i], lasts[i] = r.First, r.Last
		}
		found, err := read(firsts, lasts, int32(limit-len(all)))
		if err != nil {
			return nil, err
		}
		after = lasts[len(lasts)-1]
		if len(found) == 0 {
			if err := s.dropSpans(ctx, q, t, outbox.Pending, []int64{firsts[0], after}); err != nil {
				return nil, err
			}
		}
		all = append(all, found...)
		if used == len(spans) && len(spans) < limit { // there are no more
			break
		}
	}
	return all, nil
}

// dropSpans takes spans of a state out of the way that are empty now, of those that events of ids may be in.
func (s *Store) dropSpans(ctx context.Context, q db.Querier, t outbox.Target, state outbox.State, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := s.q.DropEmptySpans(ctx, q, pgq.DropEmptySpansParams{
		Target: string(t), State: string(state), FromID: slices.Min(ids), ToID: slices.Max(ids),
	})
	if err != nil {
		return fmt.Errorf("drop empty spans: %w", db.Classify(err))
	}
	return nil
}

// dropDeadSpans is dropSpans for what is not dead any more, of both targets.
func (s *Store) dropDeadSpans(ctx context.Context, q db.Querier, ids []int64) error {
	for _, t := range outbox.AllTargets() {
		if err := s.dropSpans(ctx, q, t, outbox.Dead, ids); err != nil {
			return err
		}
	}
	return nil
}

// MendSpans looks at the next limit events after one, whether those that wait or are dead can be found, and sees to it that they
// can; mended says how many could not. last is where to go on, 0 at the end. Nothing of ours leaves such events behind; a copy that
// was restored with its triggers off would.
func (s *Store) MendSpans(ctx context.Context, q db.Querier, after int64, limit int) (mended, last int64, err error) {
	r, err := s.q.MendSpans(ctx, q, pgq.MendSpansParams{After: after, MaxRows: int32(limit)})
	if err != nil {
		return 0, 0, fmt.Errorf("mend spans: %w", db.Classify(err))
	}
	return r.Mended, r.LastID, nil
}
