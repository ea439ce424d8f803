package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// EventHead is an event without its value, and how it stands.
type EventHead struct {
	outbox.Event
	State outbox.State
	// NewerWaits is the id of a newer event of the same flight on schd that is not sent; 0: none, or it is not on schd.
	NewerWaits int64
}

// DeadEvents gives the ids of dead events from … to, both inclusive, ascending; of one target if it is not empty.
func (s *Store) DeadEvents(ctx context.Context, q db.Querier, t outbox.Target, from, to int64, limit int) ([]int64, error) {
	ids, err := s.q.DeadEvents(ctx, q, pgq.DeadEventsParams{Target: orNil(string(t)), FromID: from, ToID: to, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("read dead events: %w", db.Classify(err))
	}
	return ids, nil
}

// LockEvents gives the events named, without their values, and keeps others from changing how they stand. Dead ones come back
// from the archive for that; the others that are there stay there.
func (s *Store) LockEvents(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]EventHead, error) {
	if err := s.q.RestoreDeadEvents(ctx, tx, ids); err != nil {
		return nil, fmt.Errorf("restore archived events: %w", db.Classify(err))
	}
	rows, err := s.q.LockEvents(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("lock events: %w", db.Classify(err))
	}
	out := make(map[int64]EventHead, len(rows))
	for _, r := range rows {
		out[r.EventID] = EventHead{
			Event: outbox.Event{
				ID: r.EventID, Target: outbox.Target(r.Target), Message: message.Position{Generation: r.Generation, ID: r.MsgID},
				FLID: r.Flid, StateVersion: r.StateVersion, Kind: message.Kind(r.Kind), SNDR: r.Sndr,
			},
			State: outbox.State(r.State), NewerWaits: r.NewerWaits,
		}
	}
	archived, err := s.q.ArchivedEvents(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("read archived events: %w", db.Classify(err))
	}
	for _, r := range archived {
		out[r.EventID] = EventHead{
			Event: outbox.Event{ID: r.EventID, Target: outbox.Target(r.Target), FLID: r.Flid}, State: outbox.State(r.State),
		}
	}
	return out, nil
}

// RequeueEvents makes dead events PENDING, with all their attempts before them.
func (s *Store) RequeueEvents(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := s.q.RequeueEvents(ctx, tx, ids); err != nil {
		return fmt.Errorf("requeue events: %w", db.Classify(err))
	}
	return s.dropDeadSpans(ctx, tx, ids)
}

// SendStates makes an event on schd of the state each flight has now, one a flight, in the place of the dead ones given. The
// caller holds PIPELINE_LOCK (lease.Block).
func (s *Store) SendStates(ctx context.Context, tx pgx.Tx, dead []EventHead, now time.Time) error {
	newest := make(map[int64]outbox.Event, len(dead))
	var flids []int64
	for _, d := range dead {
		if _, seen := newest[d.FLID]; !seen {
			flids = append(flids, d.FLID)
		}
		if d.ID > newest[d.FLID].ID {
			newest[d.FLID] = d.Event
		}
	}
	flights, err := s.LoadFlights(ctx, tx, flids)
	if err != nil {
		return err
	}
	byFLID := make(map[int64]*flight.Flight, len(flights))
	for _, f := range flights {
		byFLID[f.FLID] = f
	}
	events := make([]outbox.Event, len(flids))
	for i, flid := range flids {
		events[i] = outbox.StateOf(newest[flid], byFLID[flid], s.zone)
	}
	return s.InsertEvents(ctx, tx, events, now)
}
