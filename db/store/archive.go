package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
)

// Archived is what one batch of the archive moved, and where it left off.
type Archived struct {
	Messages, Events int64
	Last             ArchivePlace
}

// ArchivePlace is a place in the archive's walk by received time; zero is its beginning.
type ArchivePlace struct {
	At time.Time
	ID int64
}

// WalkIndexes makes the statements of tx that come after it walk their indexes in order, whatever the statistics say: they
// take a thousand rows of millions, and after a large load, before the first ANALYZE, the planner sorted all of them for
// each batch (450 ms instead of 15 with 200,000 rows).
func WalkIndexes(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
	return db.Classify(err)
}

// ScanRanges is WalkIndexes for statements whose index is a BRIN: it knows no order, and is only read through a bitmap.
func ScanRanges(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
	return db.Classify(err)
}

// ArchiveMessages moves the next messages received before the time given, with their events, from the place on: terminal
// ones whose mark is written, given up or not wanted and whose events are SENT or DEAD. All of a batch or nothing; rows
// that somebody holds are left for another time. Identities and texts stay.
func (s *Store) ArchiveMessages(ctx context.Context, q db.Querier, from ArchivePlace, before, now time.Time, limit int) (Archived, error) {
	r, err := s.q.ArchiveMessages(ctx, q, pgq.ArchiveMessagesParams{
		Before: before, AfterTime: from.At, AfterID: from.ID, MaxRows: int32(limit), Now: now,
	})
	if err != nil {
		return Archived{}, fmt.Errorf("archive messages: %w", db.Classify(err))
	}
	if err := s.archivedDead(ctx, q, r.Events); err != nil {
		return Archived{}, err
	}
	return Archived{Messages: r.Messages, Events: r.Events, Last: ArchivePlace{r.LastTime, r.LastID}}, nil
}

// ArchiveEvents moves events, SENT or DEAD and created before, whose message is not in the working tables.
func (s *Store) ArchiveEvents(ctx context.Context, q db.Querier, before, now time.Time, limit int) (int64, error) {
	n, err := s.q.ArchiveEvents(ctx, q, pgq.ArchiveEventsParams{Before: before, MaxRows: int32(limit), Now: now})
	if err != nil {
		return 0, fmt.Errorf("archive events: %w", db.Classify(err))
	}
	return n, s.archivedDead(ctx, q, n)
}

// archivedDead drops the spans of dead events that went with a batch; nobody else would come by.
func (s *Store) archivedDead(ctx context.Context, q db.Querier, events int64) error {
	if events == 0 {
		return nil
	}
	return s.dropDeadSpans(ctx, q, []int64{1, math.MaxInt64})
}

// DropTexts deletes texts taken over before, but never one of a message that is still to be tried.
func (s *Store) DropTexts(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropTexts(ctx, q, pgq.DropTextsParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("texts", err)
}

// DropIdentities deletes identities bound before.
func (s *Store) DropIdentities(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropIdentities(ctx, q, pgq.DropIdentitiesParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("identities", err)
}

func dropped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("delete old %s: %w", what, db.Classify(err))
	}
	return nil
}
