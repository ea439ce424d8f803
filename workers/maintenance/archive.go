package maintenance

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
)

// ArchiveConfig says how long what stays in the working tables.
type ArchiveConfig struct {
	Retention  time.Duration // finished messages, by received time (archive.retention)
	Texts      time.Duration // raw.retention
	Identities time.Duration // identity.retention
	Batch      int           // rows of one transaction; 0 means 1000
}

// Names of the tasks of this package, as operators write them (contract §8.12).
const (
	ArchiveTask     = "archive"
	HistoryTask     = "history-sweep"
	SnapLogTask     = "snap-log"
	ConsistencyTask = "consistency"
)

// snapLogKept is how long schd_snap_log remembers a schedule (design §10).
const snapLogKept = 90 * 24 * time.Hour

const defaultBatch = 1000

// Archive moves finished messages and their events out of the working tables, and deletes texts and identities that are
// past their own retention. Every batch is one short statement that is whole or was not: it may be killed anywhere.
type Archive struct {
	config ArchiveConfig
	pool   *pgxpool.Pool
	store  *store.Store
	now    func() time.Time

	mu   sync.Mutex
	from store.ArchivePlace // where this pass over the messages has come
}

// NewArchive makes it.
func NewArchive(c ArchiveConfig, pool *pgxpool.Pool, s *store.Store, now func() time.Time) *Archive {
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	return &Archive{config: c, pool: pool, store: s, now: now}
}

// Do moves the next batch of messages or, once they are through, what is left: events, texts and identities.
func (a *Archive) Do(ctx context.Context) (Piece, error) {
	p := Piece{Report: Report{Counts: map[string]int64{}}}
	now := a.now()
	if err := a.messages(ctx, now, &p); err != nil || p.More {
		return p, err
	}
	before := now.Add(-a.config.Retention)
	for _, rest := range []struct {
		what string
		one  func(tx pgx.Tx) (int64, error)
	}{
		{"events", func(tx pgx.Tx) (int64, error) { return a.store.ArchiveEvents(ctx, tx, before, now, a.config.Batch) }},
		{"texts", func(tx pgx.Tx) (int64, error) {
			return a.store.DropTexts(ctx, tx, now.Add(-a.config.Texts), a.config.Batch)
		}},
		{"identities", func(tx pgx.Tx) (int64, error) {
			return a.store.DropIdentities(ctx, tx, now.Add(-a.config.Identities), a.config.Batch)
		}},
	} {
		n, err := a.inTx(ctx, rest.one)
		if err != nil {
			return p, err
		}
		p.Counts[rest.what] += n
		p.More = p.More || n == int64(a.config.Batch)
	}
	return p, nil
}

func (a *Archive) inTx(ctx context.Context, do func(tx pgx.Tx) (int64, error)) (n int64, err error) {
	err = db.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		if err := store.WalkIndexes(ctx, tx); err != nil {
			return err
		}
		n, err = do(tx)
		return err
	})
	return n, err
}

// messages moves the next batch of this pass; a pass ends with a batch that found nothing, or is begun anew after a failure.
func (a *Archive) messages(ctx context.Context, now time.Time, p *Piece) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var got store.Archived
	_, err := a.inTx(ctx, func(tx pgx.Tx) (_ int64, err error) {
		got, err = a.store.ArchiveMessages(ctx, tx, a.from, now.Add(-a.config.Retention), now, a.config.Batch)
		return got.Messages, err
	})
	if err != nil {
		a.from = store.ArchivePlace{}
		return err
	}
	p.Counts["messages"], p.Counts["events"] = got.Messages, got.Events
	p.More, a.from = got.Messages > 0, got.Last
	if !p.More {
		a.from = store.ArchivePlace{}
	}
	return nil
}

// SnapLog is the task that forgets schedules applied long ago.
func SnapLog(pool *pgxpool.Pool, s *store.Store, now func() time.Time) func(context.Context) (Piece, error) {
	return func(ctx context.Context) (Piece, error) {
		n, err := s.DropSnapLog(ctx, pool, now().Add(-snapLogKept), defaultBatch)
		return Piece{More: n == defaultBatch, Report: Report{Counts: map[string]int64{"rows": n}}}, err
	}
}
