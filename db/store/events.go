package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// Queued is an event that is not sent, and how its delivery stands.
type Queued struct {
	outbox.Event
	Attempts    int       // tries the broker refused for the event's own fault
	NextAttempt time.Time // zero: at once
}

// QueuedID is a Queued without its content.
type QueuedID struct {
	ID, FLID    int64
	NextAttempt time.Time // zero: at once
	CreatedAt   time.Time
}

// maxInsertBytes bounds the payloads of one INSERT, so that a schedule of thousands of flights is not held in memory twice.
const maxInsertBytes = 1 << 20

// InsertEvents puts events in, in the order given: their ids ascend in it. The row's payload is the record's value to the
// letter, with the event's id where it has one. The caller holds PIPELINE_LOCK (O2), without which ids of two
// transactions would mix.
func (s *Store) InsertEvents(ctx context.Context, tx pgx.Tx, events []outbox.Event, now time.Time) error {
	writes, err := s.EventWrites(ctx, tx, len(events), slices.Values(events), now)
	if err != nil {
		return err
	}
	return WriteAll(ctx, tx, writes)
}

// EventWrites numbers n events and gives the statements that put them in, as InsertEvents does.
func (s *Store) EventWrites(ctx context.Context, tx pgx.Tx, n int, events iter.Seq[outbox.Event], now time.Time) (Writes, error) {
	if n == 0 {
		return func(func(Write, error) bool) {}, nil
	}
	ids, err := s.q.EventIDs(ctx, tx, int32(n))
	if err != nil {
		return nil, fmt.Errorf("number events: %w", db.Classify(err))
	}
	return func(yield func(Write, error) bool) {
		p, size := pgq.InsertEventsParams{Now: now}, 0
		insert := func() bool {
			all := p
			p, size = pgq.InsertEventsParams{Now: now}, 0
			return yield(func(ctx context.Context, tx pgx.Tx) error {
				return wrapped("insert events", s.q.InsertEvents(ctx, tx, all))
			}, nil)
		}
		for e := range events {
			appendEvent(&p, e.WithID(ids[0]))
			ids, size = ids[1:], size+len(e.Payload)
			if size >= maxInsertBytes && !insert() {
				return
			}
		}
		if len(p.EventIds) > 0 {
			insert()
		}
	}, nil
}

func appendEvent(p *pgq.InsertEventsParams, e outbox.Event) {
	p.EventIds = append(p.EventIds, e.ID)
	p.Targets = append(p.Targets, string(e.Target))
	p.MsgIds = append(p.MsgIds, e.Message.ID)
	p.Generations = append(p.Generations, e.Message.Generation)
	p.Flids = append(p.Flids, e.FLID)
	p.PartitionKeys = append(p.PartitionKeys, e.PartitionKey)
	p.EventTypes = append(p.EventTypes, string(e.Type))
	p.StateVersions = append(p.StateVersions, e.StateVersion)
	p.Kinds = append(p.Kinds, string(e.Kind))
	p.Sndrs = append(p.Sndrs, e.SNDR)
	p.Payloads = append(p.Payloads, string(e.Payload))
	p.ReceivedAts = append(p.ReceivedAts, e.ReceivedAt)
}

// EventsByID gives those of the events named that are not sent, in order.
func (s *Store) EventsByID(ctx context.Context, q db.Querier, ids []int64) ([]Queued, error) {
	rows, err := s.q.EventsByID(ctx, q, ids)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", db.Classify(err))
	}
	out := make([]Queued, len(rows))
	for i, r := range rows {
		out[i] = queued(pgq.PendingEventsRow(r))
	}
	return out, nil
}

func queued(r pgq.PendingEventsRow) Queued {
	return Queued{
		Event: outbox.Event{
			ID: r.EventID, Target: outbox.Target(r.Target), Message: message.Position{Generation: r.Generation, ID: r.MsgID},
			FLID: r.Flid, PartitionKey: r.PartitionKey, Type: outbox.Type(r.EventType), StateVersion: r.StateVersion,
			Kind: message.Kind(r.Kind), SNDR: r.Sndr, Payload: r.Payload, ReceivedAt: orZero(r.ReceivedAt),
		},
		Attempts: int(r.Attempts), NextAttempt: orZero(r.NextAttemptAt),
	}
}

// Delivered is an event that is in its topic.
type Delivered struct {
	ID, FLID int64
	Place    outbox.Place
	Older    []int64 // events of the same flight it stood for
}

// Refusal is an event the broker refused for its own fault: one more attempt is spent.
type Refusal struct {
	ID   int64
	Fate outbox.Fate // what the broker had against it
	Next time.Time   // zero: it is DEAD
	Err  error
}

// MarkSent makes events SENT, and those they stood for with them. On schd it closes what is older and DEAD too: it may not go
// out any more.
func (s *Store) MarkSent(ctx context.Context, tx pgx.Tx, t outbox.Target, events []Delivered, now time.Time) error {
	if len(events) == 0 {
		return nil
	}
	sent := pgq.MarkEventsSentParams{Now: &now}
	older := pgq.MarkEventsSupersededParams{Now: &now}
	flids := make([]int64, len(events))
	for i, e := range events {
		sent.Ids = append(sent.Ids, e.ID)
		sent.Partitions = append(sent.Partitions, e.Place.Partition)
		sent.Offsets = append(sent.Offsets, e.Place.Offset)
		older.Ids = append(older.Ids, e.Older...)
		older.Newer = append(older.Newer, slices.Repeat([]int64{e.ID}, len(e.Older))...)
		flids[i] = e.FLID
	}
	if _, err := s.q.MarkEventsSent(ctx, tx, sent); err != nil {
		return fmt.Errorf("mark events sent: %w", db.Classify(err))
	}
	if len(older.Ids) > 0 {
		if _, err := s.q.MarkEventsSuperseded(ctx, tx, older); err != nil {
			return fmt.Errorf("mark events superseded: %w", db.Classify(err))
		}
	}
	if t == outbox.Schd {
		if err := s.closeDead(ctx, tx, t, flids, sent.Ids, now); err != nil {
			return err
		}
	}
	return s.dropSpans(ctx, tx, t, outbox.Pending, append(older.Ids, sent.Ids...))
}

// closeDead closes the dead events of the flights that are older than what each of them has sent now.
func (s *Store) closeDead(ctx context.Context, tx pgx.Tx, t outbox.Target, flids, newer []int64, now time.Time) error {
	dead, err := s.q.OvertakenEvents(ctx, tx, pgq.OvertakenEventsParams{Target: string(t), Flids: flids, Newer: newer})
	if err != nil {
		return fmt.Errorf("find dead events: %w", db.Classify(err))
	}
	if len(dead) == 0 {
		return nil
	}
	closed := pgq.CloseDeadEventsParams{Now: &now}
	for _, d := range dead {
		closed.Ids, closed.Newer = append(closed.Ids, d.EventID), append(closed.Newer, d.Newer)
	}
	if _, err := s.q.CloseDeadEvents(ctx, tx, closed); err != nil {
		return fmt.Errorf("close dead events: %w", db.Classify(err))
	}
	return s.dropSpans(ctx, tx, t, outbox.Dead, closed.Ids)
}

// MarkFailed spends an attempt of each event and puts it into backoff or among the dead.
func (s *Store) MarkFailed(ctx context.Context, tx pgx.Tx, events []Refusal) error {
	if len(events) == 0 {
		return nil
	}
	type row struct {
		ID    int64        `json:"event_id"`
		State outbox.State `json:"state"`
		Fate  outbox.Fate  `json:"refusal"`
		Next  *time.Time   `json:"next_attempt_at"`
		Error string       `json:"last_error"`
	}
	rows := make([]row, len(events))
	for i, e := range events {
		rows[i] = row{ID: e.ID, State: outbox.Dead, Fate: e.Fate, Error: fault.Text(e.Err)}
		if !e.Next.IsZero() {
			rows[i].State, rows[i].Next = outbox.Pending, &e.Next
		}
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return fault.Wrap(fault.Infra, "mark events failed", err)
	}
	if _, err := s.q.MarkEventsFailed(ctx, tx, b); err != nil {
		return fmt.Errorf("mark events failed: %w", db.Classify(err))
	}
	return nil
}

// ClaimTerm gives the sender of a target, whose fence tx holds, a term newer than every one given before.
func (s *Store) ClaimTerm(ctx context.Context, tx pgx.Tx, lane string, t outbox.Target, offer outbox.Term) (outbox.Term, error) {
	r, err := s.q.ClaimTerm(ctx, tx, pgq.ClaimTermParams{
		Lane: lane, Target: string(t), ClusterID: offer.Cluster, ProducerID: offer.Producer, Epoch: offer.Epoch,
	})
	if err != nil {
		return outbox.Term{}, fmt.Errorf("claim a term: %w", db.Classify(err))
	}
	return outbox.Term{Cluster: r.ClusterID, Producer: r.ProducerID, Epoch: r.Epoch}, nil
}

// EventBacklog is how a target stands.
type EventBacklog struct {
	Pending, Dead int64
	Oldest        time.Time // when the oldest pending event was made; zero when there is none
}

// EventBacklog counts a target's events.
func (s *Store) EventBacklog(ctx context.Context, q db.Querier, t outbox.Target) (EventBacklog, error) {
	r, err := s.q.EventBacklog(ctx, q, string(t))
	return EventBacklog{Pending: r.Pending, Dead: r.Dead, Oldest: r.Oldest}, db.Classify(err)
}
