package store

import (
	"context"
	"errors"
	"fmt"
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

// OpsMessage gives one message, from the archive when it is there; ok is false when nobody knows it. Without a generation it is
// the newest that had the id.
func (s *Store) OpsMessage(ctx context.Context, q db.Querier, id int64, generation *int32) (m OpsMessage, archived, ok bool, err error) {
	row, err := s.q.OpsMessage(ctx, q, pgq.OpsMessageParams{MsgID: id, Generation: generation})
	if err == nil {
		return OpsMessage(row), false, true, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return m, false, false, fmt.Errorf("read message %d: %w", id, db.Classify(err))
	}
	old, err := s.q.OpsArchivedMessage(ctx, q, pgq.OpsArchivedMessageParams{MsgID: id, Generation: generation})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return m, false, false, nil
	case err != nil:
		return m, false, false, fmt.Errorf("read archived message %d: %w", id, db.Classify(err))
	}
	return OpsMessage(old), true, true, nil
}
