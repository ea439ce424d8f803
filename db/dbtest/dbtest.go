// Package dbtest gives tests real databases: a migrated PostgreSQL database of one's own, a transaction that is rolled
// back, or a MariaDB schema with the two mailbox tables. For tests only.
//
// The servers are those that $MSGX_TEST_PG and $MSGX_TEST_MYSQL name (see the command serve), else private ones, started
// by the first test of the process that asks and stopped by Run. Where none are installed, tests are skipped with the
// reason, or fail under CI=true.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"msgexchange/db/dbserver"
)

// Zone of the test servers: nothing may depend on it, and its odd offset shows what does.
const Zone = "America/St_Johns"

// Names of the environment variables with administrators' DSNs of running servers.
const (
	EnvPostgres = "MSGX_TEST_PG"
	EnvMariaDB  = "MSGX_TEST_MYSQL"
)

// shared is what all tests of this process use together. It cannot be handed down: the tests of a package only have
// their *testing.T in common.
var shared = &servers{ //nolint:gochecknoglobals // see above
	postgres: server{env: EnvPostgres, start: dbserver.StartPostgres},
	mariadb:  server{env: EnvMariaDB, start: dbserver.StartMariaDB},
}

type servers struct {
	postgres, mariadb server
	rolled            rolledBack
}

// server is started or found at most once in a process.
type server struct {
	env   string
	start func(context.Context, dbserver.Options) (*dbserver.Server, error)

	once sync.Once
	dsn  string
	own  *dbserver.Server // nil when the environment names it
	err  error
}

// need gives the administrator's DSN, or skips or fails the test.
func (s *server) need(tb testing.TB) string {
	tb.Helper()
	s.once.Do(func() {
		if s.dsn = os.Getenv(s.env); s.dsn != "" {
			return
		}
		if s.own, s.err = s.start(context.Background(), dbserver.Options{Zone: Zone}); s.err == nil {
			s.dsn = s.own.DSN
		}
	})
	if s.err == nil {
		return s.dsn
	}
	if errors.Is(s.err, dbserver.ErrNotInstalled) && os.Getenv("CI") != "true" {
		tb.Skipf("not run: %v", s.err)
	}
	tb.Fatal(s.err)
	return ""
}

func (s *server) stop() error {
	if s.own == nil {
		return nil
	}
	return s.own.Stop()
}

// Run runs the tests of a package and stops what they started; it gives the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }
//
// A package without it works too; its servers are then killed when the process ends, and the next start
// removes their folders.
func Run(m *testing.M) int {
	code := m.Run()
	shared.rolled.close()
	if err := errors.Join(shared.postgres.stop(), shared.mariadb.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		return max(code, 1)
	}
	return code
}
