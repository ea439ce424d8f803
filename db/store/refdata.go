package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/message"
	"msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

// Applied is what a batch of reference data did.
type Applied struct {
	BatchID          int64
	Changed, Removed int64
	Stale            bool // it came too late and did nothing
}

// ApplyReference applies a batch in tx, all of it or, with an error, nothing; until tx commits everybody else reads the list
// as it was. validator is what the neighbour marked its answer with; empty: nothing. Set-based: 100,000 records take seconds.
func (s *Store) ApplyReference(ctx context.Context, tx pgx.Tx, b refdata.Batch, validator string, now time.Time) (Applied, error) {
	op := "apply reference data " + b.RType
	set, err := s.q.LockRefSet(ctx, tx, b.RType)
	if err != nil {
		return Applied{}, wrapped(op, err)
	}
	done, said := Applied{BatchID: set.NextBatchID}, b.SaidAt(now)
	if b.Stale(message.Position{Generation: set.FloorGeneration, ID: set.FloorMsgID}) {
		done.Stale = true
		return done, nil
	}
	if done.Changed, done.Removed, err = s.changeReference(ctx, tx, b, done.BatchID, said); err != nil {
		return Applied{}, wrapped(op, err)
	}
	err = s.q.MoveRefSet(ctx, tx, pgq.MoveRefSetParams{
		Rtype: b.RType, BatchID: done.BatchID, Source: string(b.Source), Whole: b.Whole(), Now: said, Validator: orNil(validator),
		Raise: b.Mode != sis.Put && !b.From.IsZero(), Generation: b.From.Generation, MsgID: b.From.ID,
	})
	if err != nil {
		return Applied{}, wrapped(op, err)
	}
	return done, wrapped(op, s.q.InsertRefBatch(ctx, tx, pgq.InsertRefBatchParams{
		ID: done.BatchID, Rtype: b.RType, Source: string(b.Source), Mode: string(b.Mode), MsgID: idOrNil(b.From.ID), Generation: b.From.Generation,
		Records: int32(len(b.Records)), Changed: int32(done.Changed), Removed: int32(done.Removed), Now: now,
	}))
}

// putAtOnce is how many records one statement writes: of the largest list each ends well before statement_timeout.
const putAtOnce = 10_000

// changeReference writes the records and says how many it put and how many it removed.
func (s *Store) changeReference(ctx context.Context, tx pgx.Tx, b refdata.Batch, batchID int64, said time.Time) (put, removed int64, err error) {
	keys, docs := make([]string, len(b.Records)), make([]string, len(b.Records))
	for i, r := range b.Records {
		keys[i], docs[i] = r.Key, string(r.Doc)
	}
	if b.Mode == sis.Drop {
		removed, err = s.q.DropRefRecords(ctx, tx, pgq.DropRefRecordsParams{
			Rtype: b.RType, Keys: keys, Generation: b.From.Generation, MsgID: b.From.ID,
		})
		return 0, removed, err
	}
	if b.Whole() {
		removed, err = s.q.DropOtherRefRecords(ctx, tx, pgq.DropOtherRefRecordsParams{
			Rtype: b.RType, Keys: keys, Generation: b.From.Generation, MsgID: b.From.ID,
		})
		if err != nil {
			return 0, 0, err
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), putAtOnce)
		part, err := s.q.PutRefRecords(ctx, tx, pgq.PutRefRecordsParams{
			Rtype: b.RType, Source: string(b.Source), BatchID: batchID, Now: said, Generation: b.From.Generation, MsgID: b.From.ID,
			Keys: keys[:n], Docs: docs[:n],
		})
		if err != nil {
			return 0, 0, err
		}
		put, keys, docs = put+part, keys[n:], docs[n:]
	}
	return put, removed, nil
}

// ReferenceVersions gives the batches that readers see of the lists, in a fixed order: equal versions mean equal lists.
func (s *Store) ReferenceVersions(ctx context.Context, q db.Querier, rtypes []string) ([]int64, error) {
	rows, err := s.q.RefVersions(ctx, q, rtypes)
	if err != nil {
		return nil, wrapped("read versions of reference data", err)
	}
	out := make([]int64, len(rtypes))
	for _, r := range rows {
		out[slices.Index(rtypes, r.Rtype)] = r.BatchID
	}
	return out, nil
}

// ReferenceLists gives the lists whole, by name.
func (s *Store) ReferenceLists(ctx context.Context, q db.Querier, rtypes []string) (map[string][]refdata.Record, error) {
	rows, err := s.q.RefRecords(ctx, q, rtypes)
	if err != nil {
		return nil, wrapped("read reference data", err)
	}
	out := map[string][]refdata.Record{}
	for _, r := range rows {
		out[r.Rtype] = append(out[r.Rtype], refdata.Record{Key: r.Rkey, Doc: r.Doc})
	}
	return out, nil
}

// ReferenceSet is one list as a whole.
type ReferenceSet struct {
	Rtype       string     `json:"rtype"`
	RowCount    int32      `json:"count"`
	Source      *string    `json:"source"` // nil when there never was any
	BatchID     int64      `json:"batchId"`
	RefreshedAt *time.Time `json:"refreshedAt"`
	FailedAt    *time.Time `json:"failedAt"` // of the last refresh, when that failed
	Failure     *string    `json:"failure"`
}

// ReferenceSets gives all lists that anybody has said anything about.
func (s *Store) ReferenceSets(ctx context.Context, q db.Querier) ([]ReferenceSet, error) {
	rows, err := s.q.RefSets(ctx, q)
	if err != nil {
		return nil, wrapped("list reference data", err)
	}
	out := make([]ReferenceSet, len(rows))
	for i, r := range rows {
		out[i] = ReferenceSet(r)
	}
	return out, nil
}

// ReferenceSet gives one list as a whole; ok is false when nobody has said anything about it.
func (s *Store) ReferenceSet(ctx context.Context, q db.Querier, rtype string) (set ReferenceSet, ok bool, err error) {
	row, err := s.q.RefSet(ctx, q, rtype)
	if errors.Is(err, pgx.ErrNoRows) {
		return set, false, nil
	}
	return ReferenceSet(row), err == nil, wrapped("read reference data "+rtype, err)
}

// ReferenceItem is one record as it is shown.
type ReferenceItem struct {
	Rkey        string          `json:"rkey"`
	Doc         json.RawMessage `json:"doc"`
	Source      string          `json:"source"`
	BatchID     int64           `json:"batchId"`
	RefreshedAt time.Time       `json:"refreshedAt"`
}

// ReferencePage gives the records of a list by their keys, those after the key only.
func (s *Store) ReferencePage(ctx context.Context, q db.Querier, rtype, after string, limit int) ([]ReferenceItem, error) {
	rows, err := s.q.RefPage(ctx, q, pgq.RefPageParams{Rtype: rtype, After: after, MaxRows: int32(limit)})
	if err != nil {
		return nil, wrapped("read reference data "+rtype, err)
	}
	out := make([]ReferenceItem, len(rows))
	for i, r := range rows {
		out[i] = ReferenceItem(r)
	}
	return out, nil
}

// ReferenceValidator is what the neighbour marked its last answer with, when that answer is what we have; else empty.
func (s *Store) ReferenceValidator(ctx context.Context, q db.Querier, rtype string) (string, error) {
	rows, err := s.q.RefValidator(ctx, q, rtype)
	if err != nil || len(rows) == 0 {
		return "", wrapped("read reference data "+rtype, err)
	}
	return orZeroOf(rows[0]), nil
}

// ConfirmReference notes that the answer of the neighbour that validator stands for is still all there is, if that is what we
// still have.
func (s *Store) ConfirmReference(ctx context.Context, tx pgx.Tx, rtype, validator string, now time.Time) error {
	return wrapped("confirm "+rtype, s.q.ConfirmRefSet(ctx, tx, pgq.ConfirmRefSetParams{Rtype: rtype, Validator: validator, Now: now}))
}

// FailReference notes that a refresh failed; what we have stays.
func (s *Store) FailReference(ctx context.Context, tx pgx.Tx, rtype, why string, now time.Time) error {
	return wrapped("note the failed refresh of "+rtype, s.q.FailRefSet(ctx, tx, pgq.FailRefSetParams{Rtype: rtype, Now: now, Failure: why}))
}
