package deliver

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
)

// Schd is the role schd: of each flight the newest waiting state, at most every flush-period. A state that could not be sent
// holds up only its own flight, until a newer one replaces it; none goes out after a newer one.
type Schd struct {
	courier
	config SchdConfig

	notBefore time.Time // of the next look
}

// NewSchd makes the role.
func NewSchd(c SchdConfig, d Deps) *Schd {
	return &Schd{courier: newCourier(d, outbox.Schd, c.FlushLimit), config: c}
}

// windowFlushes is how many flushes' worth of waiting events one flush looks over for newer states of its flights.
const windowFlushes = 10

// gather is the least time between a look that found nothing to flush and the next one: the head rings for every batch, and each
// look reads all that waits.
const gather = 100 * time.Millisecond

// Step flushes once if it is time.
func (s *Schd) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if early := s.notBefore.Sub(s.Now()); early > 0 {
		return drain.Next{Wait: early}, nil
	}
	waiting, err := s.Store.WaitingEvents(ctx, s.Pool, s.target, windowFlushes*s.size())
	if err != nil || len(waiting) == 0 {
		return drain.Next{}, err
	}
	sends, wait := s.plan(waiting, s.Now())
	if len(sends) == 0 {
		s.notBefore = s.Now().Add(min(wait, gather))
		return drain.Next{Wait: wait}, nil
	}
	older := make(map[int64][]int64, len(sends))
	ids := make([]int64, len(sends))
	for i, send := range sends {
		ids[i] = send.ID
		older[send.ID] = send.Represents[:len(send.Represents)-1]
	}
	events, err := s.fetch(ctx, f, func(tx pgx.Tx) ([]store.Queued, error) { return s.Store.EventsByID(ctx, tx, ids) })
	if err != nil || len(events) == 0 {
		return drain.Next{}, err
	}
	batch := make([]parcel, len(events))
	for i, e := range events {
		batch[i] = parcel{Queued: e, older: older[e.ID]}
	}
	return s.deliver(ctx, f, batch)
}

// plan chooses what to flush now: of each flight the newest event, unless that one is in backoff. When there is nothing, wait
// says how long to wait for it.
func (s *Schd) plan(waiting []store.QueuedID, now time.Time) (sends []outbox.Send, wait time.Duration) {
	byID := make(map[int64]store.QueuedID, len(waiting))
	unsent := make([]outbox.Unsent, len(waiting))
	for i, w := range waiting {
		byID[w.ID] = w
		unsent[i] = outbox.Unsent{ID: w.ID, FLID: w.FLID}
	}
	full := len(waiting) >= s.config.FlushLimit
	soonest := now.Add(time.Minute)
	due := full
	for _, send := range outbox.Newest(unsent) {
		if next := byID[send.ID].NextAttempt; next.After(now) {
			soonest = earlier(soonest, next)
			continue
		}
		sends = append(sends, send)
		flush := byID[send.Represents[0]].CreatedAt.Add(s.config.FlushPeriod)
		if !flush.After(now) {
			due = true
		}
		soonest = earlier(soonest, flush)
	}
	if !due {
		return nil, soonest.Sub(now)
	}
	return slices.Clip(sends[:min(len(sends), s.size())]), max(soonest.Sub(now), time.Millisecond)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
