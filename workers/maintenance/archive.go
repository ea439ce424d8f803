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

const defaultBatch = 1000

// Archive moves finished messages and their events out of the working tables, and deletes texts and identities that are
// past their own retention. Every batch is one short statement that is whole or was not: it may be killed anywhere.
type Archive struct {
	config ArchiveConfig
	base

	mu   sync.Mutex
	from store.ArchivePlace // where this pass over the messages has come
}

// NewArchive makes it.
func NewArchive(c ArchiveConfig, pool *pgxpool.Pool, s *store.Store, now func() time.Time) *Archive {
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	return &Archive{config: c, base: base{pool, s, now}}
}

// Do moves the next batch of messages or, once they are through, what is left: events, texts and identities.
func (a *Archive) Do(ctx context.Context) (Piece, error) {
	p := Piece{Report: Report{Counts: map[string]int64{}}}
	now := a.now()
	if err := a.messages(ctx, now, &p); err != nil || p.More {
		return p, err
	}
	err := a.drops(ctx, &p, a.config.Batch, []drop{
		{what: "events", kept: a.config.Retention, rows: func(ctx context.Context, q db.Querier, before time.Time, limit int) (int64, error) {
			return a.store.ArchiveEvents(ctx, q, before, now, limit)
		}},
		{what: "texts", kept: a.config.Texts, rows: a.store.DropTexts, brin: true},
		{what: "identities", kept: a.config.Identities, rows: a.store.DropIdentities, brin: true},
	})
	return p, err
}

// messages moves the next batch of this pass; a pass ends with a batch that found nothing, or is begun anew after a failure.
func (a *Archive) messages(ctx context.Context, now time.Time, p *Piece) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var got store.Archived
	_, err := a.inTx(ctx, store.WalkIndexes, func(tx pgx.Tx) (_ int64, err error) {
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
