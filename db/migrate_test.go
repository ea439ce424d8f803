package db_test

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db"
	"msgexchange/db/dbserver"
	"msgexchange/db/dbtest"
	"msgexchange/migrations"
)

var update = flag.Bool("update", false, "rewrite expected files")

func TestMigrate_manyAtOnceThenAgain(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), dbtest.EmptyDSN(t)
	pool := open(t, dsn)
	ok, detail, err := db.SchemaCurrent(ctx, pool)
	require.NoError(t, err)
	require.False(t, ok)
	require.Contains(t, detail, "own migration 1 (00001_pipeline.sql) is not applied")

	var first bytes.Buffer
	log := slog.New(slog.NewTextHandler(&first, nil)) // its handler locks
	var g errgroup.Group
	for range 3 {
		g.Go(func() error { return db.Migrate(ctx, dsn, log) })
	}
	require.NoError(t, g.Wait())
	known, err := db.KnownMigrations()
	require.NoError(t, err)
	require.Equal(t, len(known), strings.Count(first.String(), `msg="migration applied"`), "each step once")
	require.Equal(t, 2, strings.Count(first.String(), `msg="schema is current"`))

	ok, detail, err = db.SchemaCurrent(ctx, pool)
	require.NoError(t, err)
	require.True(t, ok, detail)
	steps, err := db.MigrationStatus(ctx, pool)
	require.NoError(t, err)
	require.Len(t, steps, len(known))
	for _, s := range steps {
		require.True(t, s.Applied(), s)
	}
}

func TestSchemaCurrent_newerIsCurrent(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	require.NoError(t, err)
	ok, detail, err := db.SchemaCurrent(t.Context(), pool)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, detail, "own 99999")
}

func TestMigrations_upDownUp(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	up := dumpSchema(t, dsn)

	sqlDB := stdlib.OpenDBFromPool(open(t, dsn))
	defer func() { require.NoError(t, sqlDB.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, sqlDB, migrations.Files)
	require.NoError(t, err)
	_, err = provider.DownTo(t.Context(), 0)
	require.NoError(t, err)
	require.Empty(t, dumpSchema(t, dsn), "down leaves nothing behind")
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(up, dumpSchema(t, dsn)))

	const file = "../migrations/schema.sql"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(schemaHeader+up), 0o644)) //nolint:gosec // a source file
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), schemaHeader+up), "run go test ./db -run upDownUp -update")
}

const schemaHeader = "-- The schema as the migrations leave it, for review. Written by: go test ./db -run upDownUp -update\n\n"

// dumpSchema gives our own tables as pg_dump writes them, without what differs from version to version of pg_dump.
func dumpSchema(t *testing.T, dsn string) string {
	t.Helper()
	dir, err := dbserver.PostgresDir()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "pg_dump"), "--schema-only", "--no-owner", "--no-privileges",
		"--exclude-table=goose_db_version*", "--exclude-table=river_*", "--dbname", dsn)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	text := regexp.MustCompile(`(?m)^(--|SET |SELECT pg_catalog|\\).*\n`).ReplaceAllString(string(out), "")
	// River's type and functions cannot be excluded by name.
	text = regexp.MustCompile(`(?s)CREATE (TYPE|FUNCTION) public\.river_.*?;\n\n\n`).ReplaceAllString(text, "")
	return strings.TrimLeft(regexp.MustCompile(`\n{3,}`).ReplaceAllString(text, "\n\n"), "\n")
}
