package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// countStatements lets PostgreSQL count what each statement costs (-statements). The counting itself costs a little.
func countStatements(settings map[string]string) {
	settings["shared_preload_libraries"] = "pg_stat_statements"
	settings["pg_stat_statements.track"] = "all"
}

// forgetStatements begins to count anew.
func (b *bench) forgetStatements(ctx context.Context) error {
	if !b.statements {
		return nil
	}
	_, err := b.world.Pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()")
	return err
}

// printStatements tells which statements took the most time of PostgreSQL since the servers were started or forgetStatements was called.
func (b *bench) printStatements(ctx context.Context, out io.Writer) error {
	if _, err := b.world.Pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	const most = 40
	rows, err := b.world.Pool.Query(ctx, `
		SELECT total_exec_time, calls, rows, wal_bytes::float8 / 1024, left(regexp_replace(query, '\s+', ' ', 'g'), 100)
		FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT $1`, most)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%9s %8s %9s %11s %11s  %s\n", "total ms", "calls", "rows", "ms a call", "WAL kB", "statement")
	var ms, wal float64
	var calls, n int64
	var text string
	_, err = pgx.ForEachRow(rows, []any{&ms, &calls, &n, &wal, &text}, func() error {
		fmt.Fprintf(out, "%9.0f %8d %9d %11.3f %11.0f  %s\n", ms, calls, n, ms/float64(calls), wal, text)
		return nil
	})
	return err
}
