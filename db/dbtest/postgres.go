package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql, for pgtestdb
	"github.com/peterldowns/pgtestdb"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"msgexchange/db"
	"msgexchange/migrations"
)

// New gives a pool, opened as in production, on a migrated database that only this test has (0.1 to 0.3 s). Both go
// with the test; the database of a failed test stays for a look, as long as the server lives.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	pool := open(tb, DSN(tb))
	tb.Cleanup(pool.Close)
	return pool
}

// DSN makes a migrated database that only this test has. The test closes its connections before it ends, or they are cut.
func DSN(tb testing.TB) string {
	tb.Helper()
	return clone(tb, tb, migrator{})
}

// EmptyDSN makes a database without any table that only this test has.
func EmptyDSN(tb testing.TB) string {
	tb.Helper()
	return clone(tb, tb, pgtestdb.NoopMigrator{})
}

// Tx gives a transaction that is rolled back when the test ends: milliseconds. All such transactions of a process are
// on one database, so tests that run in parallel and insert the same keys wait for each other.
func Tx(tb testing.TB) pgx.Tx {
	tb.Helper()
	tx, err := shared.rolled.pool(tb).Begin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			tb.Errorf("roll back: %v", err)
		}
	})
	return tx
}

func open(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	cfg := db.Defaults()
	cfg.DSN, cfg.ApplicationName = dsn, "msgexchange/test"
	pool, err := db.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return pool
}

// clone copies the template of m, making it first if this server has none; owner's end drops the copy.
func clone(tb testing.TB, owner pgtestdb.TB, m pgtestdb.Migrator) string {
	tb.Helper()
	admin, err := url.Parse(shared.postgres.need(tb))
	if err != nil {
		tb.Fatalf("%s: not a URL", EnvPostgres)
	}
	password, _ := admin.User.Password()
	conf := pgtestdb.Custom(owner, pgtestdb.Config{
		DriverName: "pgx",
		Host:       admin.Hostname(), Port: admin.Port(),
		User: admin.User.Username(), Password: password,
		Database: "postgres", Options: admin.RawQuery,
		ForceTerminateConnections: true,
	}, m)
	return conf.URL()
}

// migrator makes pgtestdb's template.
type migrator struct{}

// Hash covers everything that makes the schema: our files and River's.
func (migrator) Hash() (string, error) {
	h := sha256.New()
	files, err := fs.Glob(migrations.Files, "*")
	if err != nil {
		return "", err
	}
	for _, f := range files {
		text, err := migrations.Files.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s\n%s\n", f, text)
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	for _, v := range river.AllVersions() {
		fmt.Fprintf(h, "%d\n%s\n", v.Version, v.SQLUp)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Migrate fills the empty template.
func (migrator) Migrate(ctx context.Context, _ *sql.DB, conf pgtestdb.Config) error {
	return db.Migrate(ctx, conf.URL(), slog.New(slog.DiscardHandler))
}

// rolledBack is the database on which Tx's transactions run; it lives as long as the process.
type rolledBack struct {
	once  sync.Once
	p     *pgxpool.Pool
	owner processOwner
}

func (r *rolledBack) pool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	r.once.Do(func() {
		// A test that stands at a breakpoint is idle in its transaction for long.
		r.p = open(tb, clone(tb, &r.owner, migrator{})+"&idle_in_transaction_session_timeout=10min")
	})
	if r.p == nil {
		tb.Fatal("dbtest: no shared database: see the first test that asked for it")
	}
	return r.p
}

func (r *rolledBack) close() {
	if r.p == nil {
		return
	}
	r.p.Close()
	for _, f := range r.owner.cleanups {
		f()
	}
}

// processOwner stands in for a test towards pgtestdb: its end is the process's, not that of the test that came first.
type processOwner struct {
	cleanups []func()
}

// Cleanup keeps f for the end.
func (o *processOwner) Cleanup(f func()) { o.cleanups = append(o.cleanups, f) }

// Failed is always false: there is nothing to look at in a database on which everything was rolled back.
func (o *processOwner) Failed() bool { return false }

// Fatalf ends what pgtestdb is doing, and with it the test run.
func (o *processOwner) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Helper does nothing.
func (o *processOwner) Helper() {}

// Logf does nothing.
func (o *processOwner) Logf(string, ...any) {}
