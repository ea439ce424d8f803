package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// Story is what happened to a message besides its row in proc_state.
type Story struct {
	Failures    []Failure      // its failed tries, the first first; the last 50
	Text        *KeptText      // nil when its text is not kept
	Owner       *IdentityOwner // nil when nobody has its identity, or no longer
	Changes     []FlightChange // the flights it touched, before and after; the first maxStoryRows
	ChangeCount int64          // all of them
	Events      []StoryEvent   // what it made, and where in Kafka that is; the first maxStoryRows
	EventCount  int64          // all of them
	Jobs        []StoryJob     // River's open jobs of the roles it waits for
}

// Failure is one failed try of a message.
type Failure struct {
	At      time.Time     `json:"at"`
	Replay  int32         `json:"replay"`  // how often the message had been put back before
	Attempt int32         `json:"attempt"` // counted from 1, anew after each replay
	State   message.State `json:"state"`   // FAILED: it was to be tried again; DEAD: given up
	Class   fault.Class   `json:"class"`
	Error   string        `json:"error"`
}

// KeptText is a text that we keep.
type KeptText struct {
	Since     time.Time
	SizeBytes int32
	Oversize  bool // too large to be loaded: only its size is known
}

// IdentityOwner is the message that an identity belongs to.
type IdentityOwner struct {
	IdentityKey string    `json:"identityKey"`
	MsgID       int64     `json:"msgId"`
	Generation  int32     `json:"generation"`
	Dttm        time.Time `json:"dttm"`
	BoundAt     time.Time `json:"boundAt"`
	Rebinds     int32     `json:"rebinds"` // how often it has changed hands
}

// StoryEvent is an event without its payload.
type StoryEvent struct {
	EventID        int64      `json:"eventId"`
	Target         string     `json:"target"`
	Flid           int64      `json:"flid"`
	EventType      string     `json:"eventType"`
	StateVersion   int64      `json:"stateVersion"`
	State          string     `json:"state"`
	Attempts       int32      `json:"attempts"`
	LastError      *string    `json:"lastError"`
	SupersededBy   *int64     `json:"supersededBy"`
	KafkaPartition *int32     `json:"kafkaPartition"`
	KafkaOffset    *int64     `json:"kafkaOffset"`
	CreatedAt      time.Time  `json:"createdAt"`
	SentAt         *time.Time `json:"sentAt"`
	Archived       bool       `json:"archived"`
}

// StoryJob is a job of River's that is not over.
type StoryJob struct {
	ID          int64     `json:"id"`
	Kind        string    `json:"kind"`
	Queue       string    `json:"queue"`
	State       string    `json:"state"`
	Attempt     int16     `json:"attempt"`
	ScheduledAt time.Time `json:"scheduledAt"`
}

// MaxFailures is how many failed tries of a message stay on record (FinishMessages).
const MaxFailures = 50

// maxStoryRows bounds each list of a story: a schedule touches thousands of flights.
const maxStoryRows = 100

// Story reads what happened to the message m, whose identity is key or, if that is empty, unknown. Run it in a snapshot.
func (s *Store) Story(ctx context.Context, tx pgx.Tx, m OpsMessage, key string) (out Story, err error) {
	at := message.Position{Generation: m.Generation, ID: m.MsgID}
	for _, read := range []func() error{
		func() (err error) { out.Failures, err = s.failures(ctx, tx, at); return err },
		func() (err error) { out.Text, err = s.keptText(ctx, tx, at); return err },
		func() (err error) { out.Owner, err = s.identityOwner(ctx, tx, key); return err },
		func() (err error) { out.Changes, err = s.ChangesOf(ctx, tx, at, 0, maxStoryRows); return err },
		func() (err error) { out.Events, err = s.storyEvents(ctx, tx, at); return err },
	} {
		if err := read(); err != nil {
			return out, err
		}
	}
	counts, err := s.q.MessageCounts(ctx, tx, pgq.MessageCountsParams{MsgID: at.ID, Generation: at.Generation})
	if err != nil {
		return out, fmt.Errorf("count what message %s did: %w", at, db.Classify(err))
	}
	out.ChangeCount, out.EventCount = counts.Changes, counts.Events
	out.Jobs, err = openJobs(ctx, tx, waitsFor(m, counts.PendingTargets))
	return out, err
}

// waitsFor are River's queues of the roles that still have to do with the message.
func waitsFor(m OpsMessage, pendingTargets []string) []string {
	queues := []string{}
	if !message.State(m.State).Terminal() {
		queues = append(queues, string(jobs.RoleHead))
	}
	if m.Mark() == MarkOwed {
		queues = append(queues, string(jobs.RoleBackfill))
	}
	for _, target := range pendingTargets {
		role := jobs.RoleMsg
		if outbox.Target(target) == outbox.Schd {
			role = jobs.RoleSchd
		}
		queues = append(queues, string(role))
	}
	return queues
}

func (s *Store) failures(ctx context.Context, q db.Querier, at message.Position) (all []Failure, err error) {
	log, err := s.q.MessageFailures(ctx, q, pgq.MessageFailuresParams{MsgID: at.ID, Generation: at.Generation})
	if err != nil {
		return nil, fmt.Errorf("read the tries of message %s: %w", at, db.Classify(err))
	}
	return all, fault.Wrap(fault.Infra, "read the tries of a message", json.Unmarshal(log, &all))
}

func (s *Store) keptText(ctx context.Context, q db.Querier, at message.Position) (*KeptText, error) {
	rows, err := s.q.MessageText(ctx, q, pgq.MessageTextParams{MsgID: at.ID, Generation: at.Generation})
	if err != nil || len(rows) == 0 {
		return nil, db.Classify(err)
	}
	return &KeptText{Since: rows[0].CreatedAt, SizeBytes: rows[0].SizeBytes, Oversize: rows[0].Oversize}, nil
}

func (s *Store) identityOwner(ctx context.Context, q db.Querier, key string) (*IdentityOwner, error) {
	if key == "" {
		return nil, nil //nolint:nilnil // nobody is an answer
	}
	rows, err := s.q.IdentityOwner(ctx, q, key)
	if err != nil {
		return nil, fmt.Errorf("read the owner of an identity: %w", db.Classify(err))
	}
	if len(rows) == 0 {
		return nil, nil //nolint:nilnil // nobody is an answer
	}
	owner := IdentityOwner(rows[0])
	return &owner, nil
}

func (s *Store) storyEvents(ctx context.Context, q db.Querier, at message.Position) ([]StoryEvent, error) {
	rows, err := s.q.MessageEvents(ctx, q, pgq.MessageEventsParams{MsgID: at.ID, Generation: at.Generation, MaxRows: maxStoryRows})
	if err != nil {
		return nil, fmt.Errorf("read the events of message %s: %w", at, db.Classify(err))
	}
	out := make([]StoryEvent, len(rows))
	for i, r := range rows {
		out[i] = StoryEvent(r)
	}
	return out, nil
}

// openJobs reads River's own table, which sqlc does not know. Served by River's index of what is to be fetched next.
func openJobs(ctx context.Context, q db.Querier, queues []string) ([]StoryJob, error) {
	rows, err := q.Query(ctx, `
		SELECT id, kind, queue, state::text, attempt, scheduled_at FROM river_job
		WHERE state IN ('available', 'pending', 'running', 'retryable', 'scheduled') AND queue = ANY($1) ORDER BY id LIMIT 20`, queues)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", db.Classify(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoryJob])
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", db.Classify(err))
	}
	if out == nil {
		out = []StoryJob{}
	}
	return out, nil
}
