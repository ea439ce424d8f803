package maintenance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
)

// Names of the tasks of this package, as operators write them (contract §8.12).
const (
	ArchiveTask     = "archive"
	RetentionTask   = "retention"
	SnapLogTask     = "snap-log"
	HistoryTask     = "history-sweep"
	ConsistencyTask = "consistency"
	SampleTask      = "consistency-sample"
)

// base is what the tasks have in common.
type base struct {
	pool  *pgxpool.Pool
	store *store.Store
	now   func() time.Time
}

// inTx runs one short batch; plan says how its statements find their rows.
func (b base) inTx(ctx context.Context, plan func(context.Context, pgx.Tx) error, do func(tx pgx.Tx) (int64, error)) (n int64, err error) {
	err = db.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		if err := plan(ctx, tx); err != nil {
			return err
		}
		n, err = do(tx)
		return err
	})
	return n, err
}

// drop is one kind of rows that goes when it is old: in batches, each of which may be the last.
type drop struct {
	what string
	kept time.Duration
	rows func(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error)
	brin bool // its index is one
}

// drops takes one batch of each kind, each in a transaction of its own, and adds to the piece what went.
func (b base) drops(ctx context.Context, p *Piece, limit int, all []drop) error {
	now := b.now()
	for _, d := range all {
		plan := store.WalkIndexes
		if d.brin {
			plan = store.ScanRanges
		}
		n, err := b.inTx(ctx, plan, func(tx pgx.Tx) (int64, error) { return d.rows(ctx, tx, now.Add(-d.kept), limit) })
		if err != nil {
			return err
		}
		p.Counts[d.what] += n
		p.More = p.More || n == int64(limit)
	}
	return nil
}

const day = 24 * time.Hour

// snapLogKept is how long schd_snap_log remembers a schedule (design §10).
const snapLogKept = 90 * day

// RetentionConfig says how long what is over is kept.
type RetentionConfig struct {
	Archived time.Duration // messages and events in the archive, by received and by made (archive.keep)
	Swept    time.Duration // flights in the history (history.keep)
	Records  time.Duration // audit, ended requests, batches of reference data (audit.retention)
}

// Retention is the task that deletes what was kept long enough: no table grows for ever (docs/operations.md).
func Retention(c RetentionConfig, pool *pgxpool.Pool, s *store.Store, now func() time.Time) func(context.Context) (Piece, error) {
	return dropping(base{pool, s, now}, []drop{
		{what: "archivedMessages", kept: c.Archived, rows: s.DropArchivedMessages},
		{what: "archivedEvents", kept: c.Archived, rows: s.DropArchivedEvents},
		{what: "sweptFlights", kept: c.Swept, rows: s.DropSweptFlights},
		{what: "audit", kept: c.Records, rows: s.DropAudit},
		{what: "requests", kept: c.Records, rows: s.DropRequests},
		{what: "refBatches", kept: c.Records, rows: s.DropRefBatches},
	})
}

// SnapLog is the task that forgets schedules applied long ago.
func SnapLog(pool *pgxpool.Pool, s *store.Store, now func() time.Time) func(context.Context) (Piece, error) {
	return dropping(base{pool, s, now}, []drop{{what: "rows", kept: snapLogKept, rows: s.DropSnapLog}})
}

func dropping(b base, all []drop) func(context.Context) (Piece, error) {
	return func(ctx context.Context) (Piece, error) {
		p := Piece{Report: Report{Counts: map[string]int64{}}}
		err := b.drops(ctx, &p, defaultBatch, all)
		return p, err
	}
}
