package systemtest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of sql.Open
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

	viaPG, viaMailbox door
	base              []string // configuration of every pod
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pgDSN, mailboxDSN := dbtest.DSN(t), dbtest.Mailbox(t)
	w := &world{}
	var err error
	w.pg, err = pgxpool.New(t.Context(), pgDSN)
	require.NoError(t, err)
	t.Cleanup(w.pg.Close)
	w.mailbox, err = sql.Open("mysql", mailboxDSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.mailbox.Close() })
	w.kafka, err = rig.OpenBroker(3)
	require.NoError(t, err)
	t.Cleanup(w.kafka.Close)

	doors, err := rig.OpenDoors(t.Context(), pgDSN, mailboxDSN)
	require.NoError(t, err)
	t.Cleanup(doors.Close)
	w.viaPG, w.viaMailbox = door{doors.PG}, door{doors.Mailbox}
	w.base = append(doors.Env(),
		"MSGX_KAFKA_BROKERS="+strings.Join(w.kafka.ListenAddrs(), ","),
		"MSGX_HTTP_ADDR=127.0.0.1:0",
		"MSGX_SCHD_FLUSH_PERIOD=200ms",
		"MSGX_PIPELINE_CUTOVER_WATERMARK=zero",
	)
	return w
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
