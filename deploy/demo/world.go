//go:build demo

package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"

	"msgexchange/db"
	"msgexchange/db/dbserver"
	"msgexchange/deploy/config"
)

// world is everything that runs beside the workers.
type world struct {
	Options
	cfg      config.Config
	zone     *time.Location
	mailbox  *mailboxServer
	kafka    *kfake.Cluster
	pool     *pgxpool.Pool
	listener net.Listener
	token    string
	log      *slog.Logger
	logFile  string
	// shellFile is for another terminal, see startShell.
	shellFile string
	closers   []func() error // last opened first
}

// operator is the name that the demo's token belongs to.
const operator = "demo"

// build starts everything. What has been started is stopped again when something fails.
func build(ctx context.Context, o Options) (_ *world, err error) {
	w := &world{Options: o, cfg: config.Defaults()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.zone, err = time.LoadLocation(w.cfg.OperationDay.Zone); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	dir, err := w.folder()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	for _, start := range []func(context.Context, string) error{
		w.startLog, w.startPostgres, w.startMailbox, w.startKafka, w.startHTTP, w.startShell,
	} {
		if err := start(ctx, dir); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) onClose(f func() error) { w.closers = append(w.closers, f) }

// close stops everything.
func (w *world) close() error {
	var errs []error
	for _, c := range slices.Backward(w.closers) {
		errs = append(errs, c())
	}
	w.closers = nil
	return errors.Join(errs...)
}

// folder gives the cache folder for us alone: PostgreSQL's cluster in it serves every demo. A second demo at the same time
// gets a temporary folder.
func (w *world) folder() (string, error) {
	cache, err := dbserver.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "demo")
	const searchable = 0o755 // for the unprivileged user of the server, when we are root
	if err := os.MkdirAll(dir, searchable); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	w.onClose(lock.Close) // and that unlocks
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
		return dir, err
	}
	if dir, err = os.MkdirTemp("", "msgexchange-demo-"); err != nil {
		return "", err
	}
	w.onClose(func() error { return os.RemoveAll(dir) })
	return dir, os.Chmod(dir, searchable)
}

// startLog sends what the workers say to a file: the terminal belongs to the status line.
func (w *world) startLog(_ context.Context, dir string) error {
	w.logFile = filepath.Join(dir, "demo.log")
	f, err := os.OpenFile(w.logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w.onClose(f.Close)
	w.log = slog.New(slog.NewTextHandler(f, nil))
	return nil
}

// startPostgres starts the cluster and makes a new, migrated database in it; those of earlier runs go.
func (w *world) startPostgres(ctx context.Context, dir string) error {
	server, err := dbserver.StartPostgres(ctx, dbserver.Options{Dir: filepath.Join(dir, "postgres")})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w.onClose(server.Stop)
	if w.cfg.PG.DSN, err = newDatabase(ctx, server.DSN); err != nil {
		return fmt.Errorf("demo: new database: %w", err)
	}
	if err := db.Migrate(ctx, w.cfg.PG.DSN, w.log); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	const conns = 4 // ours, to count with
	if w.pool, err = db.Open(ctx, db.Config{DSN: w.cfg.PG.DSN, MaxConns: conns, ApplicationName: "msgexchange/demo"}); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w.onClose(func() error { w.pool.Close(); return nil })
	return nil
}

func newDatabase(ctx context.Context, admin string) (dsn string, err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE 'demo\_%'`)
	if err != nil {
		return "", err
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	name := "demo_" + strings.ToLower(rand.Text())
	statements := []string{"CREATE DATABASE " + name}
	for _, o := range old {
		statements = append(statements, "DROP DATABASE "+pgx.Identifier{o}.Sanitize()+" WITH (FORCE)")
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(admin)
	if err != nil {
		return "", err
	}
	u.Path = name
	return u.String(), nil
}

// How long the demo waits at a hole, and how often it looks for rows that came too late.
const (
	holePatience = 20 * time.Second
	latePeriod   = 5 * time.Second
)

func (w *world) startMailbox(ctx context.Context, _ string) (err error) {
	if w.mailbox, err = startMailbox(ctx); err != nil {
		return err
	}
	w.onClose(w.mailbox.close)
	w.cfg.Mailbox.DSN = w.mailbox.dsn
	w.cfg.Request.TimeoutRQFD, w.cfg.Request.TimeoutRQRD = requestTimeout, requestTimeout     // so that one is seen to expire
	w.cfg.Pipeline.MaxCommitDelay, w.cfg.Pipeline.LateDetectPeriod = holePatience, latePeriod // a drill is short
	w.cfg.Backfill.Batch = 50                                                                 // the engine's time for a statement that marks n rows grows as n²
	return nil
}

// startKafka starts a broker that any client may use; its topics are there already.
func (w *world) startKafka(context.Context, string) (err error) {
	k := &w.cfg.Kafka
	w.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(k.Partitions, k.MsgTopic(), k.SchdTopic()))
	if err != nil {
		return fmt.Errorf("demo: kafka: %w", err)
	}
	w.onClose(func() error { w.kafka.Close(); return nil })
	k.Brokers, k.CreateTopics = w.kafka.ListenAddrs(), true
	return nil
}

// startHTTP listens on the first free port from 8080 on and makes an operator's token.
func (w *world) startHTTP(ctx context.Context, dir string) (err error) {
	const firstPort, ports = 8080, 100
	var lc net.ListenConfig
	for port := range ports {
		if w.listener, err = lc.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+port)); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("demo: no free port: %w", err)
	}
	w.onClose(func() error { _ = w.listener.Close(); return nil }) // the server has closed it, if it ever ran
	w.token = rand.Text()
	w.cfg.HTTP.Addr = w.listener.Addr().String()
	w.cfg.HTTP.TokensFile = filepath.Join(dir, "tokens")
	err = os.WriteFile(w.cfg.HTTP.TokensFile, fmt.Appendf(nil, "%s %s operator\n", w.token, operator), 0o600)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
