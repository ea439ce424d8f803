package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// Page is which part of a list is wanted. All lists go by time, the newest first.
type Page struct {
	From  time.Time // inclusive; zero: no bound
	To    time.Time // exclusive; zero: no bound
	After Place     // only what stands after it; zero: from the top
	Limit int       // rows at most
}

// Place is where a row stands in a list.
type Place struct {
	At         time.Time
	Generation int32 // of messages and holes; ids of everything else are never given out again
	ID         int64
}

// freshPlan has the statements of tx planned for the values they are called with. A list has a dozen filters of which a call
// gives one or two; the plan that PostgreSQL keeps for all of them could use no index.
func freshPlan(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL plan_cache_mode = force_custom_plan")
	return db.Classify(err)
}

// MessageFilter chooses messages, archived or not. Zero values choose everything.
type MessageFilter struct {
	Page                  // by received_at, else created_at
	State   message.State //
	Class   fault.Class   // the class or the root class
	Type    string        // TYPE of the META
	Subtype string        // STYP of the META
	Error   string        // part of the last error, in any case
	Reuse   message.Reuse // what the message met when its identity was taken
	Late    bool          // only those that came after their hole had been passed
	Mark    MarkState     // MarkOwed or MarkAbandoned
	// MarkFailed leaves only those whose mark is owed and whose last try failed: they are not just on their way.
	MarkFailed bool
	FLID       int64 // only those that changed this flight
	Archived   *bool // only those that are, or are not, in the archive
}

// OpsMessages lists messages.
func (s *Store) OpsMessages(ctx context.Context, tx pgx.Tx, f MessageFilter) ([]ListedMessage, error) {
	if err := freshPlan(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := s.q.OpsMessages(ctx, tx, pgq.OpsMessagesParams{
		BeforeAt: timeOrNil(f.After.At), BeforeGeneration: f.After.Generation, BeforeID: f.After.ID,
		FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
		State: orNil(string(f.State)), Class: orNil(string(f.Class)), Type: orNil(f.Type), Styp: orNil(f.Subtype),
		Error: orNil(f.Error), Reuse: orNil(string(f.Reuse)), Late: f.Late, Flid: idOrNil(f.FLID), Archived: f.Archived,
		MarkOwed: f.Mark == MarkOwed, MarkFailed: f.MarkFailed, MarkAbandoned: f.Mark == MarkAbandoned,
	})
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", db.Classify(err))
	}
	out := make([]ListedMessage, len(rows))
	for i, r := range rows {
		out[i] = ListedMessage{Archived: r.Archived, OpsMessage: OpsMessage{
			r.MsgID, r.Generation, r.State, r.ErrorClass, r.RootErrorClass, r.LastError, r.SkipReason, r.IdentityKey, r.IdentityReuse,
			r.Attempts, r.NextAttemptAt, r.ProcessingStartedAt, r.ReceivedAt, r.CreatedAt, r.UpdatedAt, r.FinishedAt, r.Sndr, r.Type, r.Styp,
			r.Seqn, r.Dttm, r.Late, r.BackfillNextAt, r.BackfillAt, r.BackfillAttempts, r.BackfillError, r.BackfillAbandonedAt,
			r.BackfillAbandonedReason, r.ReplayCount,
		}}
	}
	return out, nil
}

// ListedMessage is a message in a list that goes through the archive too.
type ListedMessage struct {
	OpsMessage
	Archived bool
}

// Place is where m stands.
func (m ListedMessage) Place() Place {
	at := m.CreatedAt
	if m.ReceivedAt != nil {
		at = *m.ReceivedAt
	}
	return Place{At: at, Generation: m.Generation, ID: m.MsgID}
}

// EventFilter chooses events, archived or not. Zero values choose everything.
type EventFilter struct {
	Page   // by created_at
	Target outbox.Target
	State  outbox.State
	MsgID  int64
	FLID   int64
	// Archived chooses only those that are, or are not, in the archive.
	Archived *bool
}

// OpsEvent is a row of msg_event as operators see it.
type OpsEvent struct {
	EventID        int64           `json:"eventId"`
	Target         string          `json:"target"`
	MsgID          int64           `json:"msgId"`
	Generation     int32           `json:"generation"`
	Flid           int64           `json:"flid"`
	PartitionKey   string          `json:"partitionKey"`
	EventType      string          `json:"eventType"`
	StateVersion   int64           `json:"stateVersion"`
	Kind           string          `json:"kind"`
	Sndr           string          `json:"sndr"`
	State          string          `json:"state"`
	Attempts       int32           `json:"attempts"`
	NextAttemptAt  *time.Time      `json:"nextAttemptAt"`
	LastError      *string         `json:"lastError"`
	Refusal        *string         `json:"refusal"` // what the broker had against it the last time: REFUSED or TOOLARGE
	SupersededBy   *int64          `json:"supersededBy"`
	KafkaPartition *int32          `json:"kafkaPartition"`
	KafkaOffset    *int64          `json:"kafkaOffset"`
	ReceivedAt     *time.Time      `json:"receivedAt"`
	CreatedAt      time.Time       `json:"createdAt"`
	SentAt         *time.Time      `json:"sentAt"`
	Payload        json.RawMessage `json:"payload"`      // null for a tombstone, and in lists when it is larger than maxInlineBytes
	PayloadBytes   int32           `json:"payloadBytes"` // its size; 0 for a tombstone
	Archived       bool            `json:"archived"`
}

// maxInlineBytes bounds a payload that is shown in a list: a page of a thousand is at most 2 MB.
const maxInlineBytes = 2048

// Place is where e stands.
func (e OpsEvent) Place() Place { return Place{At: e.CreatedAt, ID: e.EventID} }

// OpsEvents lists events; payloads over maxInlineBytes are left out.
func (s *Store) OpsEvents(ctx context.Context, tx pgx.Tx, f EventFilter) ([]OpsEvent, error) {
	if err := freshPlan(ctx, tx); err != nil {
		return nil, err
	}
	bySpan, err := s.bySpan(ctx, tx, f.State)
	if err != nil {
		return nil, err
	}
	rows, err := s.q.OpsEvents(ctx, tx, pgq.OpsEventsParams{
		BeforeAt: timeOrNil(f.After.At), BeforeID: f.After.ID, FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
		Target: orNil(string(f.Target)), State: orNil(string(f.State)), MsgID: idOrNil(f.MsgID), Flid: idOrNil(f.FLID), Archived: f.Archived,
		BySpan: bySpan, InlineBytes: maxInlineBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", db.Classify(err))
	}
	out := make([]OpsEvent, len(rows))
	for i, r := range rows {
		out[i] = OpsEvent(r)
	}
	return out, nil
}

// bySpan says whether a list of events in a state looks for them by event_span: always the dead, which lie anywhere; of those that
// wait a few. Where many wait they are the newest, and the order of the list meets them first.
func (s *Store) bySpan(ctx context.Context, q db.Querier, state outbox.State) (bool, error) {
	const few = 2000
	if state != outbox.Pending {
		return state == outbox.Dead, nil
	}
	n, err := s.q.OpsSpanned(ctx, q, string(state))
	if err != nil {
		return false, fmt.Errorf("count waiting events: %w", db.Classify(err))
	}
	return n <= few, nil
}

// OpsEvent gives one event, archived or not, with all of its payload; ok is false when nobody knows it.
func (s *Store) OpsEvent(ctx context.Context, q db.Querier, id int64) (e OpsEvent, ok bool, err error) {
	rows, err := s.q.OpsEvent(ctx, q, id)
	if err != nil {
		return e, false, fmt.Errorf("read event %d: %w", id, db.Classify(err))
	}
	if len(rows) == 0 {
		return e, false, nil
	}
	return OpsEvent(rows[0]), true, nil
}

// OpsHole is a range of ids that were missing.
type OpsHole struct {
	Lane        string     `json:"lane"`
	Generation  int32      `json:"generation"`
	FirstID     int64      `json:"firstId"`
	LastID      int64      `json:"lastId"` // inclusive
	FirstSeenAt time.Time  `json:"firstSeenAt"`
	ReleasedAt  *time.Time `json:"releasedAt"` // when it was passed; null while the lane waits before it
}

// OpsHoles lists holes by id, the highest first; of those that were passed, the ones that are remembered. open chooses those
// that the lane waits before, or the others.
func (s *Store) OpsHoles(ctx context.Context, q db.Querier, open *bool, after Place, limit int) ([]OpsHole, error) {
	rows, err := s.q.OpsHoles(ctx, q, pgq.OpsHolesParams{
		Open: open, Paged: after != Place{}, BeforeGeneration: after.Generation, BeforeID: after.ID, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list holes: %w", db.Classify(err))
	}
	out := make([]OpsHole, len(rows))
	for i, r := range rows {
		out[i] = OpsHole(r)
	}
	return out, nil
}

func idOrNil(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}
