package systemtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbserver"
	"msgexchange/deploy/systemtest/rig"
)

// pgbouncer finds the program. Where it is missing the test is not run, and says so; under CI that is a failure.
func pgbouncer(t *testing.T) string {
	t.Helper()
	places := []string{"pgbouncer", "/usr/sbin/pgbouncer"}
	if cache, err := dbserver.CacheDir(); err == nil {
		places = append(places, filepath.Join(cache, "root/usr/sbin/pgbouncer"))
	}
	for _, p := range places {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	const missing = "PgBouncer is not installed (on Debian: apt-get install pgbouncer): what it does to us is not tested, only db.TestCheckServer's stand-in"
	if os.Getenv("CI") == "true" {
		require.FailNow(t, missing)
	}
	t.Skip(missing)
	return ""
}

// throughPgBouncer starts PgBouncer in transaction mode before the world's PostgreSQL and gives the setting that leads a pod
// through it.
func (w *world) throughPgBouncer(t *testing.T, settings string) string {
	t.Helper()
	pg, err := pgxpool.ParseConfig(w.pgDSN)
	require.NoError(t, err)
	c, port := pg.ConnConfig, freePort(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // it drops to another user
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
%s
`, c.Host, c.Port, c.User, c.Password, port, settings), 0o644)) //nolint:gosec // as above
	args := []string{file}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	program := pgbouncer(t)
	cmd := exec.CommandContext(t.Context(), program, args...)
	if libs, err := filepath.Glob(filepath.Join(program, "../../lib/*-linux-*")); err == nil { // unpacked, not installed
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
	}
	out := &rig.Log{}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.Tail(30))
		}
	})
	dsn := strings.Replace(w.pgDSN, fmt.Sprintf("%s:%d", c.Host, c.Port), fmt.Sprintf("127.0.0.1:%d", port), 1)
	eventually(t, 20*time.Second, func() error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	})
	return "MSGX_PG_DSN=" + dsn
}

// A pooler in transaction mode before PostgreSQL is refused at start, whatever it lets through, and the reason is said (K07).
func TestK07_PgBouncer(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"as installed":            "",
		"told to ignore settings": "ignore_startup_parameters = extra_float_digits,statement_timeout,lock_timeout,idle_in_transaction_session_timeout,max_parallel_workers_per_gather,jit",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dsn := w.throughPgBouncer(t, settings)
			for _, args := range [][]string{{"serve"}, {"migrate", "up"}} {
				p := w.command(t, strings.Join(args, " "), args, dsn)
				require.Equal(t, 1, p.exit(30*time.Second))
				require.Contains(t, p.log.String(), "there is a connection pooler before PostgreSQL; connect to the server itself")
			}
		})
	}
}
