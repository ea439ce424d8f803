package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
)

// selection measures what the hot loops ask of proc_state, in an empty table and behind millions of finished rows, in turns.
func selection(ctx context.Context, b *bench) error {
	empty, err := b.database(ctx, "selection_empty", 0)
	if err != nil {
		return err
	}
	defer empty.Close()
	full, err := b.database(ctx, "selection_full", b.rows)
	if err != nil {
		return err
	}
	defer full.Close()
	s := store.New(b.world.Zone)
	now := time.Now()
	for _, ask := range []struct {
		what string
		run  func(pool *pgxpool.Pool) error
	}{
		{"head selection", func(p *pgxpool.Pool) error { _, err := s.Head(ctx, p, lane, 0, 200); return err }},
		{"backfill scan", func(p *pgxpool.Pool) error {
			tx, err := p.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = s.ClaimDebts(ctx, tx, lane, 50, now.Add(time.Hour), now.Add(2*time.Hour))
			return errors.Join(err, tx.Rollback(ctx))
		}},
	} {
		var inEmpty, inFull []float64
		const asks = 300
		for range asks {
			for _, m := range []struct {
				pool *pgxpool.Pool
				into *[]float64
			}{{empty, &inEmpty}, {full, &inFull}} {
				at := time.Now()
				if err := ask.run(m.pool); err != nil {
					return err
				}
				*m.into = append(*m.into, time.Since(at).Seconds())
			}
		}
		const goal = 1.5
		ratio := median(inFull) / median(inEmpty)
		b.table.goal(fmt.Sprintf("%s, %d finished rows", ask.what, b.rows), ratio <= goal, "≤ 1.5 × empty", "%.2f ms = %.2f × empty", 1000*median(inFull), ratio)
	}
	return nil
}

const lane = "default"

// fresh makes a database with our tables and nothing in them.
func (b *bench) fresh(ctx context.Context, name string) (pool *pgxpool.Pool, dsn string, err error) {
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if _, err := b.world.Pool.Exec(ctx, statement); err != nil {
			return nil, "", err
		}
	}
	dsn = strings.Replace(b.world.PGDSN, "/postgres?", "/"+name+"?", 1)
	if err := db.Migrate(ctx, dsn, slog.New(slog.DiscardHandler)); err != nil {
		return nil, "", err
	}
	cfg := db.Defaults()
	cfg.DSN, cfg.ApplicationName = dsn+"&statement_timeout=0", "msgexchange/bench"
	pool, err = db.Open(ctx, cfg)
	return pool, dsn, err
}

// database makes one of its own with so many finished rows and, above them, as many unfinished ones and marks owed as a batch
// takes.
func (b *bench) database(ctx context.Context, name string, rows int) (*pgxpool.Pool, error) {
	pool, _, err := b.fresh(ctx, name)
	if err != nil {
		return nil, err
	}
	const insert = `
		INSERT INTO proc_state (msg_id, state, identity_key, attempts, processing_started_at, received_at, created_at, updated_at, finished_at,
		                        content_hash, sndr, type, styp, seqn, dttm, backfill_next_at, backfill_at)
		SELECT n, $3, 'AODB|FLOP|STND|' || n, 1, now(), now(), now(), now(), CASE WHEN $3 = 'SUCCEEDED' THEN now() END,
		       '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'AODB', 'FLOP', 'STND', n, now(),
		       CASE WHEN $4 THEN now() END, CASE WHEN $3 = 'SUCCEEDED' AND NOT $4 THEN now() END
		FROM generate_series($1::bigint, $2::bigint) n`
	const chunk, batch = 500_000, 500
	insertRows := func(from, to int, state string, owed bool) error {
		_, err := pool.Exec(ctx, insert, from, to, state, owed)
		return err
	}
	for at := 0; at < rows; at += chunk {
		if err := insertRows(at+1, min(at+chunk, rows), "SUCCEEDED", false); err != nil {
			return nil, err
		}
	}
	if err := insertRows(rows+1, rows+batch, "SUCCEEDED", true); err != nil {
		return nil, err
	}
	if err := insertRows(rows+batch+1, rows+2*batch, "PENDING", false); err != nil {
		return nil, err
	}
	for _, statement := range []string{
		"INSERT INTO inbox_cursor (lane, committed_up_to, updated_at) VALUES ('" + lane + "', 1000000000, now())",
		"VACUUM ANALYZE proc_state",
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return pool, nil
}
