package dbserver

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// PostgresDir finds the folder of PostgreSQL's programs, pg_dump among them. It returns ErrNotInstalled when there is none.
func PostgresDir() (string, error) {
	return find("postgresql", []string{"postgres", "initdb", "pg_dump"}, []string{
		"usr/lib/postgresql/*/bin",          // Debian
		"usr/pgsql-*/bin",                   // Red Hat
		"opt/homebrew/opt/postgresql@*/bin", // Homebrew on ARM
		"usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
		"home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	})
}

// StartPostgres starts a private PostgreSQL. It returns ErrNotInstalled when there is none on the machine.
func StartPostgres(ctx context.Context, opts Options) (*Server, error) {
	binDir, err := PostgresDir()
	if err != nil {
		return nil, err
	}
	return start(ctx, postgres{}, binDir, opts)
}

type postgres struct{}

func (postgres) name() string { return "postgres" }

func (postgres) init(ctx context.Context, s *Server) error {
	argv := []string{
		filepath.Join(s.BinDir, "initdb"), "--pgdata", s.dataDir(), "--username", "postgres",
		"--auth", "scram-sha-256", "--pwfile", filepath.Join(s.dir, "password"),
		"--encoding", "UTF8", "--locale", "C",
	}
	if !s.opts.Durable {
		argv = append(argv, "--no-sync")
	}
	return s.tool(ctx, argv...)
}

func (postgres) command(s *Server) []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": "",
		"timezone":                s.zone(),
		"log_timezone":            s.zone(),
		"max_connections":         "200",
		"shared_buffers":          "64MB",
		"max_wal_size":            "512MB",
	}
	if !s.opts.Durable {
		// synchronous_commit stays on: what was committed must outlive Kill.
		maps.Copy(settings, map[string]string{"fsync": "off", "full_page_writes": "off"})
	}
	maps.Copy(settings, s.opts.Settings)

	argv := []string{filepath.Join(s.BinDir, "postgres"), "-D", s.dataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		argv = append(argv, "-c", name+"="+settings[name])
	}
	return argv
}

func (postgres) dsn(s *Server) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", s.password), Host: s.Addr, Path: "postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

func (postgres) ready(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return conn.Close(ctx)
}

// Fast shutdown cuts clients off; immediate shutdown ends all processes of the server without a checkpoint.
func (postgres) stopSignal() syscall.Signal { return syscall.SIGINT }
func (postgres) killSignal() syscall.Signal { return syscall.SIGQUIT }
