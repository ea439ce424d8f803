// Package db opens our own PostgreSQL, begins its transactions, brings its schema up to date and says what its errors
// mean (design §2; style "Transactions"). It holds no statement about flights or messages: those are in db/queries and
// db/store. Nothing here ever talks to the mailbox.
package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Querier runs statements in or out of a transaction: a *pgxpool.Pool, a *pgxpool.Conn, a *pgx.Conn or a pgx.Tx.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// rollbackTimeout bounds a rollback, which runs even when the caller's context is over.
const rollbackTimeout = 5 * time.Second

// InTx runs fn in one transaction: committed when fn returns nil, rolled back when it returns an error or panics.
// Never nest it: fn gets tx and uses nothing else. Errors come back classified (Classify). An error of the commit itself
// means unknown: it may have happened, and the next run finds out from the stored state.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return inTx(ctx, pool, pgx.TxOptions{}, fn)
}

// InSnapshot runs fn in a read-only transaction in which every statement sees the same moment.
func InSnapshot(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return inTx(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

func inTx(ctx context.Context, pool *pgxpool.Pool, opts pgx.TxOptions, fn func(tx pgx.Tx) error) error {
	tx, err := pool.BeginTx(ctx, opts)
	if err != nil {
		return Classify(err)
	}
	defer rollback(ctx, tx)
	if err := fn(tx); err != nil {
		return Classify(err)
	}
	return Classify(tx.Commit(ctx))
}

// rollback ends tx; after a commit it does nothing. Its error is worth nothing: the connection is then closed, which
// rolls back too.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}
