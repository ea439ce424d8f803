package db

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"msgexchange/migrations"
)

// Source says who owns a migration.
type Source string

// The two sources, in the order in which they are applied.
const (
	SourceOwn   Source = "own"
	SourceRiver Source = "river"
)

// Migration is one step of the schema.
type Migration struct {
	Source    Source    `json:"source"`
	Version   int64     `json:"version"`
	Name      string    `json:"name"`       // empty when this program does not know it
	AppliedAt time.Time `json:"applied_at"` // zero while it is not applied
}

// Applied says that the step is in the database.
func (m Migration) Applied() bool { return !m.AppliedAt.IsZero() }

// MigrationStatus lists all steps that this program or the database knows, in the order in which they are applied. It
// changes nothing; an empty database is one where nothing is applied.
func MigrationStatus(ctx context.Context, q Querier) ([]Migration, error) {
	known, err := KnownMigrations()
	if err != nil {
		return nil, err
	}
	applied, err := appliedMigrations(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", Classify(err))
	}
	for _, a := range applied {
		i := slices.IndexFunc(known, func(k Migration) bool { return k.Source == a.Source && k.Version == a.Version })
		if i < 0 {
			known = append(known, a)
			continue
		}
		known[i].AppliedAt = a.AppliedAt
	}
	slices.SortStableFunc(known, func(a, b Migration) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Version, b.Version))
	})
	return known, nil
}

// SchemaCurrent says whether every step that this program knows is applied; detail says in words which is missing, or
// how far the schema is. A schema newer than this program is current: versions N-1 and N+1 work together.
func SchemaCurrent(ctx context.Context, q Querier) (ok bool, detail string, err error) {
	steps, err := MigrationStatus(ctx, q)
	if err != nil {
		return false, "", err
	}
	newest := map[Source]int64{}
	for _, m := range steps {
		if !m.Applied() {
			return false, fmt.Sprintf("%s migration %d (%s) is not applied: run migrate up", m.Source, m.Version, m.Name), nil
		}
		newest[m.Source] = m.Version
	}
	return true, fmt.Sprintf("%s %d, %s %d", SourceOwn, newest[SourceOwn], SourceRiver, newest[SourceRiver]), nil
}

// KnownMigrations lists the steps that this program brings, none of them applied.
func KnownMigrations() ([]Migration, error) {
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var known []Migration
	for _, f := range files {
		version, err := goose.NumericComponent(f)
		if err != nil {
			return nil, fmt.Errorf("list migrations: %s: %w", f, err)
		}
		known = append(known, Migration{Source: SourceOwn, Version: version, Name: f})
	}
	river, err := riverMigrator(nil)
	if err != nil {
		return nil, fmt.Errorf("list river's migrations: %w", err)
	}
	for _, v := range river.AllVersions() {
		known = append(known, Migration{Source: SourceRiver, Version: int64(v.Version), Name: v.Name})
	}
	return known, nil
}

// appliedMigrations reads goose's and River's bookkeeping, as far as it exists.
func appliedMigrations(ctx context.Context, q Querier) ([]Migration, error) {
	var own, river bool
	const exist = `SELECT to_regclass('goose_db_version') IS NOT NULL, to_regclass('river_migration') IS NOT NULL`
	if err := q.QueryRow(ctx, exist).Scan(&own, &river); err != nil {
		return nil, err
	}
	var applied []Migration
	read := func(source Source, query string) error {
		rows, err := q.Query(ctx, query)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Migration, error) {
			m := Migration{Source: source}
			err := row.Scan(&m.Version, &m.AppliedAt)
			return m, err
		})
		applied = append(applied, found...)
		return err
	}
	if own {
		if err := read(SourceOwn, `SELECT version_id, tstamp AT TIME ZONE 'UTC' FROM goose_db_version WHERE is_applied AND version_id > 0`); err != nil {
			return nil, err
		}
	}
	if river {
		if err := read(SourceRiver, `SELECT version, created_at FROM river_migration WHERE line = 'main'`); err != nil {
			return nil, err
		}
	}
	return applied, nil
}
