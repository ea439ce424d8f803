package dbserver_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbserver"
)

const zone = "America/St_Johns"

// need skips, or fails under CI=true, when the server is not installed.
func need(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// query runs one statement on a connection of its own and gives the text it returns, if any.
func query(t *testing.T, dsn, statement string) string {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, statement)
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(texts, "\n")
}

// openDir is a folder that the unprivileged user of the servers can reach, unlike t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "msgx-test-") //nolint:usetesting // t.TempDir is closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the point of it
	return dir
}

func TestPostgres_keepsItsDataOverKillStopAndANewStart(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(openDir(t), "pg")
	s, err := dbserver.StartPostgres(ctx, dbserver.Options{Dir: dir, Zone: zone, Settings: map[string]string{"work_mem": "5MB"}})
	need(t, err)
	dsn := s.DSN
	require.Equal(t, zone, query(t, dsn, "SHOW timezone"))
	require.Equal(t, "5MB", query(t, dsn, "SHOW work_mem"))
	query(t, dsn, "CREATE TABLE kept (n text)")
	query(t, dsn, "INSERT INTO kept VALUES ('before the kill')")

	require.NoError(t, s.Kill())
	_, err = pgx.Connect(ctx, dsn)
	require.Error(t, err)
	require.NoError(t, s.Restart(ctx))
	require.Equal(t, dsn, s.DSN)
	require.Equal(t, "before the kill", query(t, dsn, "SELECT n FROM kept"))
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "stopping twice does nothing")

	again, err := dbserver.StartPostgres(ctx, dbserver.Options{Dir: dir})
	require.NoError(t, err)
	require.Equal(t, "before the kill", query(t, again.DSN, "SELECT n FROM kept"))
	require.Equal(t, "UTC", query(t, again.DSN, "SHOW timezone"))
	require.NoError(t, again.Stop())
}

func TestPostgres_saysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := dbserver.StartPostgres(t.Context(), dbserver.Options{Settings: map[string]string{"work_mem": "many"}})
	if errors.Is(err, dbserver.ErrNotInstalled) {
		need(t, err)
	}
	require.ErrorContains(t, err, `"work_mem": "many"`)
}

// Several servers start at once in our tests; in a folder they shared, one would delete the temporary tables of another.
func TestMariaDB_usesNoFolderOfOthers(t *testing.T) {
	dir := openDir(t)
	t.Setenv("TMPDIR", filepath.Join(dir, "absent"))
	s, err := dbserver.StartMariaDB(t.Context(), dbserver.Options{Dir: filepath.Join(dir, "mariadb")})
	need(t, err)
	require.NoError(t, s.Stop())
}

func TestMariaDB_survivesKillAndRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := dbserver.StartMariaDB(ctx, dbserver.Options{Zone: zone})
	need(t, err)
	db, err := sql.Open("mysql", s.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(ctx, "CREATE DATABASE kept")
	require.NoError(t, err)

	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart(ctx))
	var offset, name, engine string
	require.NoError(t, db.QueryRowContext(ctx, "SELECT TIMEDIFF('2026-01-01 00:00', FROM_UNIXTIME(1767225600)), DATABASE() IS NULL, @@default_storage_engine").Scan(&offset, &name, &engine))
	require.Equal(t, "03:30:00", offset, "server runs in the zone with the odd offset")
	require.Equal(t, "InnoDB", engine)
	_, err = db.ExecContext(ctx, "USE kept")
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.Error(t, db.PingContext(ctx))
}
