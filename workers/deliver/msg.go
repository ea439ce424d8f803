package deliver

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
)

// Msg is the role msg: every event, oldest first. An event in backoff stops the target: nothing behind it is sent.
type Msg struct {
	courier
	full   bool        // the last batch was as large as it may be
	marked int64       // the newest event of the batches before: nothing up to it should come again
	floor  store.Floor // not for schd: a state that came back must be seen before a newer one of its flight goes out
}

// NewMsg makes the role.
func NewMsg(c Config, d Deps) *Msg {
	return &Msg{courier: newCourier(d, outbox.Msg, c.Batch)}
}

// Step delivers one batch.
func (m *Msg) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := m.floor.After(m.Now())
	if !m.full { // else there are more, and the fence may as well be taken at once
		if waiting, err := m.Store.EventsWait(ctx, m.Pool, m.target, after); err != nil || !waiting {
			return drain.Next{}, err
		}
	}
	size := m.size()
	events, err := m.fetch(ctx, f, func(tx pgx.Tx) ([]store.Queued, error) {
		return m.Store.PendingEvents(ctx, tx, m.target, after, size)
	})
	m.full = len(events) == size
	if err != nil || len(events) == 0 {
		return drain.Next{}, err
	}
	m.floor.Rise(events[0].ID)
	now := m.Now()
	ready := slices.IndexFunc(events, func(e store.Queued) bool { return e.NextAttempt.After(now) })
	if ready == 0 {
		return drain.Next{Wait: min(events[0].NextAttempt.Sub(now), drain.LongestNap)}, nil // an older one may be put back meanwhile
	}
	if ready > 0 {
		events = events[:ready]
	}
	if events[0].ID <= m.marked {
		m.unsure = true // its mark was lost with PostgreSQL, or an operator put it back
	}
	batch := make([]parcel, len(events))
	for i, e := range events {
		batch[i].Queued = e
	}
	next, err := m.deliver(ctx, f, batch)
	if err == nil {
		m.marked = max(m.marked, events[len(events)-1].ID)
	}
	return next, err
}
