package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
)

// OpsMessage is a row of proc_state as operators see it: the columns in lowerCamel (contract §8.12).
type OpsMessage struct {
	MsgID                   int64      `json:"msgId"`
	Generation              int32      `json:"generation"`
	State                   string     `json:"state"`
	ErrorClass              *string    `json:"errorClass"`
	RootErrorClass          *string    `json:"rootErrorClass"`
	LastError               *string    `json:"lastError"`
	SkipReason              *string    `json:"skipReason"`
	IdentityKey             *string    `json:"identityKey"`
	IdentityReuse           *string    `json:"identityReuse"`
	Attempts                int32      `json:"attempts"`
	NextAttemptAt           *time.Time `json:"nextAttemptAt"`
	ProcessingStartedAt     *time.Time `json:"processingStartedAt"`
	ReceivedAt              *time.Time `json:"receivedAt"`
	CreatedAt               time.Time  `json:"createdAt"`
	UpdatedAt               time.Time  `json:"updatedAt"`
	FinishedAt              *time.Time `json:"finishedAt"`
	Sndr                    *string    `json:"sndr"`
	Type                    *string    `json:"type"`
	Styp                    *string    `json:"styp"`
	Seqn                    *int64     `json:"seqn"`
	Dttm                    *time.Time `json:"dttm"`
	Late                    bool       `json:"late"`
	BackfillNextAt          *time.Time `json:"backfillNextAt"`
	BackfillAt              *time.Time `json:"backfillAt"`
	BackfillAttempts        int32      `json:"backfillAttempts"`
	BackfillError           *string    `json:"backfillError"`
	BackfillAbandonedAt     *time.Time `json:"backfillAbandonedAt"`
	BackfillAbandonedReason *string    `json:"backfillAbandonedReason"`
	ReplayCount             int32      `json:"replayCount"`
}

// MarkState is how far the processed mark of a message is (design §8).
type MarkState string

// The closed set of mark states.
const (
	MarkNotDue    MarkState = "NOT_DUE" // not finished yet, or no mark is wanted
	MarkOwed      MarkState = "OWED"
	MarkWritten   MarkState = "WRITTEN" // by us, or found written
	MarkAbandoned MarkState = "ABANDONED"
)

// Mark tells how far the message's processed mark is.
func (m OpsMessage) Mark() MarkState {
	switch {
	case m.BackfillAbandonedAt != nil:
		return MarkAbandoned
	case m.BackfillAt != nil:
		return MarkWritten
	case m.BackfillNextAt != nil:
		return MarkOwed
	}
	return MarkNotDue
}

// OpsFilter chooses rows of a list, newest first. Zero values choose everything.
type OpsFilter struct {
	State  string
	Class  string    // of a message: its class or its root class
	Target string    // of an event
	MsgID  int64     // of an event
	FLID   int64     // of an event
	From   time.Time // messages by received_at, else created_at; events by created_at; inclusive
	To     time.Time // exclusive
	Before int64     // only ids below: the cursor
	Limit  int
}

// before is the cursor of a list as its query wants it: without one everything is below.
func before(id int64) int64 {
	if id == 0 {
		return math.MaxInt64
	}
	return id
}

// OpsMessages lists messages that are not archived.
func (s *Store) OpsMessages(ctx context.Context, q db.Querier, f OpsFilter) ([]OpsMessage, error) {
	rows, err := s.q.OpsMessages(ctx, q, pgq.OpsMessagesParams{
		BeforeID: before(f.Before), State: orNil(f.State), Class: orNil(f.Class),
		FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", db.Classify(err))
	}
	out := make([]OpsMessage, len(rows))
	for i, r := range rows {
		out[i] = OpsMessage(r)
	}
	return out, nil
}

// OpsMessage gives one message, from the archive when it is there; ok is false when nobody knows it.
func (s *Store) OpsMessage(ctx context.Context, q db.Querier, id int64) (m OpsMessage, archived, ok bool, err error) {
	row, err := s.q.OpsMessage(ctx, q, id)
	if err == nil {
		return OpsMessage(row), false, true, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return m, false, false, fmt.Errorf("read message %d: %w", id, db.Classify(err))
	}
	old, err := s.q.OpsArchivedMessage(ctx, q, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return m, false, false, nil
	case err != nil:
		return m, false, false, fmt.Errorf("read archived message %d: %w", id, db.Classify(err))
	}
	return OpsMessage(old), true, true, nil
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
	Payload        json.RawMessage `json:"payload"`
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
}

// OpsEvents lists events that are not archived.
func (s *Store) OpsEvents(ctx context.Context, q db.Querier, f OpsFilter) ([]OpsEvent, error) {
	rows, err := s.q.OpsEvents(ctx, q, pgq.OpsEventsParams{
		BeforeID: before(f.Before), Target: orNil(f.Target), State: orNil(f.State), MsgID: idOrNil(f.MsgID), Flid: idOrNil(f.FLID),
		FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
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

func idOrNil(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

// OpsSummary is where everything stands.
type OpsSummary struct {
	Lanes    []OpsLane      `json:"lanes"`
	Leases   []OpsLease     `json:"leases"`
	Messages OpsBacklog     `json:"messages"`
	Events   []OpsOutbox    `json:"events"`
	Marks    OpsMarksBehind `json:"marks"`
	Flights  int64          `json:"liveFlights"`
}

// OpsLane is how far a lane's inbox is.
type OpsLane struct {
	Lane          string     `json:"lane"`
	Generation    int32      `json:"generation"`
	CommittedUpTo int64      `json:"committedUpTo"` // the watermark W
	IDStep        int32      `json:"idStep"`
	SeededAt      *time.Time `json:"seededAt"`
	SeededFrom    *string    `json:"seededFrom"`
	StoppedReason *string    `json:"stoppedReason"`
	StoppedAt     *time.Time `json:"stoppedAt"`
	LastPolledAt  *time.Time `json:"lastPolledAt"`
	HolesOpen     int64      `json:"holesOpen"`
}

// OpsLease is who works on a role.
type OpsLease struct {
	Lane        string    `json:"lane"`
	Role        string    `json:"role"`
	Epoch       int64     `json:"epoch"`
	Holder      string    `json:"holder"`
	HeartbeatAt time.Time `json:"heartbeatAt"`
}

// OpsBacklog is what is not finished yet.
type OpsBacklog struct {
	Unfinished    int64   `json:"unfinished"`
	Failed        int64   `json:"failed"`
	HeadID        int64   `json:"headId"` // 0 when nothing is unfinished
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsOutbox is what is not delivered yet to one target. Targets without any are left out.
type OpsOutbox struct {
	Target        string  `json:"target"`
	Pending       int64   `json:"pending"`
	Dead          int64   `json:"dead"`
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsMarksBehind is what is owed to the mailbox.
type OpsMarksBehind struct {
	Owed          int64   `json:"owed"`
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsSummary reads where everything stands; ages are as of now. Run it in a snapshot, so that the numbers add up.
func (s *Store) OpsSummary(ctx context.Context, q db.Querier, now time.Time) (OpsSummary, error) {
	out := OpsSummary{Lanes: []OpsLane{}, Leases: []OpsLease{}, Events: []OpsOutbox{}}
	lanes, err := s.q.OpsLanes(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: lanes: %w", db.Classify(err))
	}
	for _, r := range lanes {
		out.Lanes = append(out.Lanes, OpsLane(r))
	}
	leases, err := s.q.OpsLeases(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: leases: %w", db.Classify(err))
	}
	for _, r := range leases {
		out.Leases = append(out.Leases, OpsLease(r))
	}
	events, err := s.q.OpsEventCounts(ctx, q, now)
	if err != nil {
		return out, fmt.Errorf("summary: events: %w", db.Classify(err))
	}
	for _, r := range events {
		out.Events = append(out.Events, OpsOutbox(r))
	}
	backlog, err := s.q.OpsUnfinished(ctx, q, now)
	if err != nil {
		return out, fmt.Errorf("summary: messages: %w", db.Classify(err))
	}
	marks, err := s.q.OpsMarks(ctx, q, now)
	if err != nil {
		return out, fmt.Errorf("summary: marks: %w", db.Classify(err))
	}
	out.Messages, out.Marks = OpsBacklog(backlog), OpsMarksBehind(marks)
	out.Flights, err = s.q.OpsLiveFlights(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: flights: %w", db.Classify(err))
	}
	return out, nil
}
