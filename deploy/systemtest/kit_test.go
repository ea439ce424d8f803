package systemtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := dbtest.Run(m)
	if dir := binary.dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	return code
}

// binary is the program under test, built once a run with the fault hooks of contract §8.21.
var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func build(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		binary.dir, binary.err = os.MkdirTemp("", "msgexchange-systemtest-") //nolint:usetesting // outlives the test that builds it
		if binary.err != nil {
			return
		}
		binary.path = filepath.Join(binary.dir, "msgexchange")
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-tags", "faults", "-o", binary.path, "msgexchange")
		if out, err := cmd.CombinedOutput(); err != nil {
			binary.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	require.NoError(t, binary.err)
	return binary.path
}

// world is everything pods talk to: a database, a mailbox and a broker of the test's own, each behind a proxy that can be cut.
type world struct {
	pg      *pgxpool.Pool
	mailbox *sql.DB
	kafka   *kfake.Cluster
	busOff  atomic.Bool
	mute    atomic.Bool  // muteKafka
	muted   atomic.Int64 // produce requests that got no answer

	pgDSN, mailboxDSN string // of the servers themselves
	viaPG, viaMailbox *proxy
	base              []string // configuration of every pod
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, dbtest.Mailbox(t))
}

// newWorldOn is newWorld with another mailbox.
func newWorldOn(t *testing.T, mailboxDSN string) *world {
	t.Helper()
	w := &world{pgDSN: dbtest.DSN(t), mailboxDSN: mailboxDSN}
	var err error
	w.pg, err = pgxpool.New(t.Context(), w.pgDSN)
	require.NoError(t, err)
	t.Cleanup(w.pg.Close)
	w.mailbox, err = sql.Open("mysql", w.mailboxDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.mailbox.Close() })
	w.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "msg", "schd"))
	require.NoError(t, err)
	t.Cleanup(w.kafka.Close)

	var pgEnv, mailboxEnv string
	w.viaPG, pgEnv = w.throughPG(t)
	w.viaMailbox, mailboxEnv = w.throughMailbox(t, nil)
	w.base = []string{
		pgEnv, mailboxEnv,
		"MSGX_KAFKA_BROKERS=" + strings.Join(w.kafka.ListenAddrs(), ","),
		"MSGX_HTTP_ADDR=127.0.0.1:0",
		"MSGX_SCHD_FLUSH_PERIOD=200ms",
		"MSGX_PIPELINE_CUTOVER_WATERMARK=zero",
	}
	return w
}

// throughPG makes a proxy before PostgreSQL and the setting that leads a pod through it.
func (w *world) throughPG(t *testing.T) (*proxy, string) {
	t.Helper()
	pg, err := pgxpool.ParseConfig(w.pgDSN)
	require.NoError(t, err)
	server := fmt.Sprintf("%s:%d", pg.ConnConfig.Host, pg.ConnConfig.Port)
	p := newProxy(t, server)
	return p, "MSGX_PG_DSN=" + strings.Replace(w.pgDSN, server, p.addr, 1)
}

// throughMailbox makes a proxy before the mailbox and the setting that leads a pod through it; change edits the DSN first.
func (w *world) throughMailbox(t *testing.T, change func(*mysql.Config)) (*proxy, string) {
	t.Helper()
	mb, err := mysql.ParseDSN(w.mailboxDSN)
	require.NoError(t, err)
	if change != nil {
		change(mb)
	}
	p := newProxy(t, mb.Addr)
	mb.Addr = p.addr
	return p, "MSGX_MAILBOX_DSN=" + mb.FormatDSN()
}

// pod is one running process.
type pod struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  *buffer
	done chan struct{}
	err  error // of Wait, once done is closed
}

// start runs serve with more configuration over the world's.
func (w *world) start(t *testing.T, name string, env ...string) *pod {
	t.Helper()
	return w.command(t, name, []string{"serve"}, env...)
}

func (w *world) command(t *testing.T, name string, args []string, env ...string) *pod {
	t.Helper()
	p := &pod{t: t, name: name, cmd: exec.CommandContext(t.Context(), build(t), args...), log: &buffer{}, done: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), w.base...), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("---- log of pod %s\n%s", name, p.log.tail(200))
		}
	})
	return p
}

// kill is kill -9, and waits for the end.
func (p *pod) kill() { _ = p.cmd.Process.Kill(); <-p.done }

func (p *pod) signal(s syscall.Signal) { p.t.Helper(); require.NoError(p.t, p.cmd.Process.Signal(s)) }

// exit waits for the process to end by itself and gives its code.
func (p *pod) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		require.FailNow(p.t, "pod "+p.name+" did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// buffer keeps what a process wrote.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }

func (b *buffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func (b *buffer) tail(lines int) string {
	all := strings.Split(b.String(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// put writes a message into the mailbox and gives its id.
func (w *world) put(t *testing.T, text string) int64 {
	t.Helper()
	return insert(t, w.mailbox, text)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func insert(t *testing.T, db execer, text string) int64 {
	t.Helper()
	r, err := db.ExecContext(t.Context(),
		"INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?, UTC_TIMESTAMP() + INTERVAL 8 HOUR, 'VALID')", text)
	require.NoError(t, err)
	id, err := r.LastInsertId()
	require.NoError(t, err)
	return id
}

// states counts proc_state by state.
func (w *world) states(t *testing.T) map[string]int {
	t.Helper()
	rows, err := w.pg.Query(t.Context(), "SELECT state, count(*) FROM proc_state GROUP BY state")
	require.NoError(t, err)
	defer rows.Close()
	got := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		require.NoError(t, rows.Scan(&state, &n))
		got[state] = n
	}
	require.NoError(t, rows.Err())
	return got
}

// number runs a query that gives one number.
func (w *world) number(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, w.pg.QueryRow(t.Context(), query, args...).Scan(&n), query)
	return n
}

// text runs a query that gives one text.
func (w *world) text(t *testing.T, query string, args ...any) (s string) {
	t.Helper()
	require.NoError(t, w.pg.QueryRow(t.Context(), query, args...).Scan(&s), query)
	return s
}

// marked counts the rows of the mailbox that carry our mark.
func (w *world) marked(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, w.mailbox.QueryRowContext(t.Context(),
		"SELECT count(*) FROM cminmsgs WHERE CMINMSGS_DATE_PROCESSED IS NOT NULL AND CMINMSGS_STATUS = 'PROCESSED'").Scan(&n))
	return n
}

// settled waits until n messages are finished and marked and every event is sent.
func (w *world) settled(t *testing.T, n int, within time.Duration) {
	t.Helper()
	eventually(t, within, func() error {
		done := w.number(t, "SELECT count(*) FROM proc_state WHERE state IN ('SUCCEEDED', 'SKIPPED', 'DEAD')")
		waiting := w.number(t, "SELECT count(*) FROM msg_event WHERE state = 'PENDING'")
		if marked := w.marked(t); done != int64(n) || waiting != 0 || marked != n {
			return fmt.Errorf("%d of %d messages finished, %d marked, %d events waiting", done, n, marked, waiting)
		}
		return nil
	})
}

// eventually asks until there is no error.
func eventually(t *testing.T, within time.Duration, ask func() error) {
	t.Helper()
	var last error
	ok := func() bool { last = ask(); return last == nil }
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			require.FailNow(t, "not within "+within.String(), "%v", last)
		case <-tick.C:
		}
	}
}

// read gives all records of a topic so far, partition by partition in order.
func (w *world) read(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	var all []*kgo.Record
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		if fetches.Empty() || errors.Is(fetches.Err(), context.DeadlineExceeded) {
			return all
		}
		all = append(all, fetches.Records()...)
	}
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// get asks a pod by HTTP.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, b.String()
}

// operator is who may give orders to pods started with asOperator.
const operatorToken = "systemtest-operator"

// asOperator is the setting that lets operatorToken in.
func asOperator(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(operatorToken+" olga operator\n"), 0o600))
	return "MSGX_HTTP_TOKENS_FILE=" + file
}

// order gives a pod an operator's order.
func order(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

// traffic writes changes of ten flights, from FLID 1 on, until it is stopped; stop gives how many messages were written, with
// the schedule that makes the flights.
func (w *world) traffic(t *testing.T, pause time.Duration) (stop func() int) {
	t.Helper()
	w.put(t, schedule(1, 1, flights))
	return w.changes(t, pause)
}

// changes is traffic on flights that are there already.
func (w *world) changes(t *testing.T, pause time.Duration) (stop func() int) {
	t.Helper()
	quit, written := make(chan struct{}), make(chan int, 1)
	go func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		n := 0
		defer func() { written <- n + 1 }()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			_, err := w.mailbox.ExecContext(context.WithoutCancel(t.Context()),
				"INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?, UTC_TIMESTAMP() + INTERVAL 8 HOUR, 'VALID')",
				flop(2+n, 1+n%flights, "STND", strconv.Itoa(n)))
			if err != nil {
				t.Errorf("write traffic: %v", err)
				return
			}
			n++
		}
	}()
	stop = sync.OnceValue(func() int { close(quit); return <-written })
	t.Cleanup(func() { stop() })
	return stop
}

// flights is how many flights traffic changes.
const flights = 10

// requireExact checks what n messages of traffic must have led to: each succeeded, each is one step of its flight's version
// and one event, all in order, nothing twice.
func (w *world) requireExact(t *testing.T, n int) {
	t.Helper()
	require.Equal(t, map[string]int{"SUCCEEDED": n}, w.states(t))
	require.Equal(t, int64(flights+n-1), w.number(t, "SELECT sum(state_version) FROM flight_schd"), "each message is one version step")
	require.Equal(t, int64(flights+n-1), w.number(t, "SELECT count(DISTINCT (flid, state_version)) FROM msg_event WHERE target = 'KAFKA:msg'"))
	require.Equal(t, int64(flights+n-1), w.number(t, "SELECT count(*) FROM msg_event WHERE target = 'KAFKA:msg'"), "one event each")
	require.Zero(t, w.number(t, "SELECT count(*) FROM msg_event WHERE state = 'DEAD' OR attempts > 0"))
	w.requireInOrder(t, "msg", flights+n-1)
}
