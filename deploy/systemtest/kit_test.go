package systemtest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/db/dbtest"
	"msgexchange/deploy/systemtest/rig"
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
		binary.path, binary.err = rig.Build(context.WithoutCancel(t.Context()), binary.dir)
	})
	require.NoError(t, binary.err)
	return binary.path
}

// world is everything pods talk to: a database, a mailbox and a broker of the test's own, behind doors that can be shut.
type world struct {
	pg      *pgxpool.Pool
	mailbox *sql.DB
	kafka   *rig.Broker
	busOff  atomic.Bool
	mute    atomic.Bool  // muteKafka
	muted   atomic.Int64 // produce requests that got no answer

	pgDSN, mailboxDSN string // of the servers themselves
	viaPG, viaMailbox door
	ear               ear      // at both doors
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
	w.mailbox, err = sql.Open("mysql", mailboxDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.mailbox.Close() })
	w.kafka, err = rig.OpenBroker(3)
	require.NoError(t, err)
	t.Cleanup(w.kafka.Close)

	var through []string
	w.viaPG, w.viaMailbox, through = w.doors(t, nil)
	w.viaPG.Watch(w.ear.hear)
	w.viaMailbox.Watch(w.ear.hear)
	w.base = append(through,
		"MSGX_KAFKA_BROKERS="+strings.Join(w.kafka.ListenAddrs(), ","),
		"MSGX_HTTP_ADDR=127.0.0.1:0",
		"MSGX_SCHD_FLUSH_PERIOD=200ms",
		"MSGX_PIPELINE_CUTOVER_WATERMARK=zero",
	)
	return w
}

// doors are a way of one's own to the two servers, and the settings that lead a pod through it; change, unless nil, edits the
// mailbox's DSN first.
func (w *world) doors(t *testing.T, change func(*mysql.Config)) (pg, mailbox door, env []string) {
	t.Helper()
	dsn, err := mysql.ParseDSN(w.mailboxDSN)
	require.NoError(t, err)
	if change != nil {
		change(dsn)
	}
	doors, err := rig.OpenDoors(t.Context(), w.pgDSN, dsn.FormatDSN())
	require.NoError(t, err)
	t.Cleanup(doors.Close)
	return door{doors.PG}, door{doors.Mailbox}, doors.Env()
}

// ear hears what pods say to the servers.
type ear struct {
	// queries counts the statements that MySQL clients send.
	queries atomic.Int64
	// loseCommits makes the answer to each nth COMMIT of a PostgreSQL client get lost: it is carried out, and the client sees
	// its connection end. 0: none. lost counts them.
	loseCommits, commits, lost atomic.Int64
}

// hear is rig.Proxy's.
func (e *ear) hear(b []byte) (lose bool) {
	const comQuery = 3
	if len(b) > 4 && b[3] == 0 && b[4] == comQuery {
		e.queries.Add(1)
	}
	nth := e.loseCommits.Load()
	if nth == 0 || !bytes.Contains(b, []byte("Q\x00\x00\x00\x0bcommit\x00")) || e.commits.Add(1)%nth != 0 {
		return false
	}
	e.lost.Add(1)
	return true
}

// door is the way of all pods to one server.
type door struct{ *rig.Proxy }

// set cuts everything that runs through and lets nothing new in, or lets it in again.
func (d door) set(cut bool) { d.Cut(cut) }

// freeze keeps connections open and lets nothing through, until thaw is called; it ends with the test at the latest.
func (d door) freeze(t *testing.T) (thaw func()) {
	t.Helper()
	thaw = d.Freeze()
	t.Cleanup(thaw)
	return thaw
}

// pod is one running process.
type pod struct {
	t   *testing.T
	log *rig.Log
	*rig.Pod
}

// start runs serve with more configuration over the world's.
func (w *world) start(t *testing.T, name string, env ...string) *pod {
	t.Helper()
	return w.command(t, name, []string{"serve"}, env...)
}

func (w *world) command(t *testing.T, name string, args []string, env ...string) *pod {
	t.Helper()
	running, err := rig.Start(t.Context(), name, build(t), args, slices.Concat(w.base, env))
	require.NoError(t, err)
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			t.Logf("---- log of pod %s\n%s", name, running.Log.Tail(200))
		}
	})
	return &pod{t, running.Log, running}
}

// kill is kill -9, and waits for the end.
func (p *pod) kill() { p.Kill() }

func (p *pod) signal(s syscall.Signal) { p.t.Helper(); require.NoError(p.t, p.Signal(s)) }

// exit waits for the process to end by itself and gives its code.
func (p *pod) exit(within time.Duration) int {
	p.t.Helper()
	code, err := p.Exit(within)
	require.NoError(p.t, err)
	return code
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
	all, err := w.kafka.Read(t.Context(), topic)
	require.NoError(t, err)
	return all
}

func header(r *kgo.Record, key string) string { return rig.Header(r, key) }

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
	return getAs(t, url, "")
}

// getAs is get by whom the token names; nobody's is empty.
func getAs(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
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
