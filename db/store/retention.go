package store

import (
	"context"
	"time"

	"msgexchange/db"
	"msgexchange/db/pgq"
)

// Each of these deletes the oldest rows of a table that are older than before, at most limit of them, and gives how many.

// DropArchivedMessages deletes archived messages received before.
func (s *Store) DropArchivedMessages(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropArchivedMessages(ctx, q, pgq.DropArchivedMessagesParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("archived messages", err)
}

// DropArchivedEvents deletes archived events made before.
func (s *Store) DropArchivedEvents(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropArchivedEvents(ctx, q, pgq.DropArchivedEventsParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("archived events", err)
}

// DropSweptFlights deletes flights swept before, with what was done to them. Who brings one back then begins at version 1.
func (s *Store) DropSweptFlights(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropSweptFlights(ctx, q, pgq.DropSweptFlightsParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("swept flights", err)
}

// DropSnapLog deletes rows of schd_snap_log of schedules received before.
func (s *Store) DropSnapLog(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropSnapLog(ctx, q, pgq.DropSnapLogParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("rows of the snapshot log", err)
}

// DropAudit deletes rows of the audit written before.
func (s *Store) DropAudit(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropAudit(ctx, q, pgq.DropAuditParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("rows of the audit", err)
}

// DropRequests deletes requests registered before that have ended; ExpiredRequests goes on counting them.
func (s *Store) DropRequests(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropRequests(ctx, q, pgq.DropRequestsParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("requests", err)
}

// DropRefBatches deletes the records of lists applied before, but of those whose rows readers see.
func (s *Store) DropRefBatches(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
	n, err := s.q.DropRefBatches(ctx, q, pgq.DropRefBatchesParams{Before: before, MaxRows: int32(limit)})
	return n, dropped("batches of reference data", err)
}
