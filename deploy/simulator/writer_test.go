package simulator

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// memory is a Mailbox that hands out ids as InnoDB does.
type memory struct {
	mu   sync.Mutex
	next int64
	rows map[int64]Row
	at   map[int64]time.Time // when each was committed
	fail error
}

func newMemory() *memory { return &memory{rows: map[int64]Row{}, at: map[int64]time.Time{}} }

func (m *memory) Insert(_ context.Context, rows []Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, r := range rows {
		m.next++
		m.rows[m.next], m.at[m.next] = r, time.Now()
	}
	return nil
}

func (m *memory) Begin(_ context.Context, row Row) (Pending, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	return &memoryTx{m: m, id: m.next, row: row}, nil
}

type memoryTx struct {
	m   *memory
	id  int64
	row Row
}

func (t *memoryTx) Rollback() error { return nil }
func (t *memoryTx) Commit() error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.m.rows[t.id], t.m.at[t.id] = t.row, time.Now()
	return nil
}

// texts are the committed texts in the order of their ids.
func (m *memory) texts() []string {
	var out []string
	for id := range m.next {
		if r, ok := m.rows[id+1]; ok {
			out = append(out, r.Text)
		}
	}
	return out
}

func TestWriterWritesTheStream(t *testing.T) {
	t.Parallel()
	box := newMemory()
	w := &Writer{Stream: stream(t, Options{Seed: 4, Flights: 30}), Mailbox: box, Count: 250}
	counts, err := w.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 250, counts.Messages)
	require.Equal(t, 250, counts.Rows)
	require.Equal(t, 1, counts.Kinds["SCHD-DNLD"])

	again := stream(t, Options{Seed: 4, Flights: 30})
	for _, text := range box.texts() {
		require.Equal(t, again.Next().Text, text)
	}
}

func TestWriterKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, start := newMemory(), time.Now()
		w := &Writer{Stream: stream(t, Options{Flights: 5}), Mailbox: box, Rate: 20, For: 10 * time.Second}
		counts, err := w.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 200, counts.Messages)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, 9950*time.Millisecond, box.at[200].Sub(start))
	})
}

func TestWriterStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1010*time.Millisecond)
		defer cancel()
		w := &Writer{Stream: stream(t, Options{Flights: 5}), Mailbox: newMemory(), Rate: 10}
		counts, err := w.Run(ctx)
		require.NoError(t, err)
		require.Equal(t, 11, counts.Messages)
	})
}

func TestWriterFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box := newMemory()
		w := &Writer{Stream: stream(t, Options{Flights: 30}), Mailbox: box, Rate: 100, Count: 1000, Faults: AllFaults()}
		counts, err := w.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1000, counts.Messages)
		require.Equal(t, 1000/23, counts.Holes)
		require.Equal(t, 1000/37, counts.Late)
		require.Equal(t, 1000/41, counts.Malformed)
		require.InDelta(t, 1000/29, counts.Duplicates, 1) // not of a late row
		require.Equal(t, 1000+counts.Duplicates+counts.Malformed, counts.Rows)
		require.Len(t, box.rows, counts.Rows)
		require.EqualValues(t, counts.Rows+counts.Holes, box.next)

		late, before := 0, time.Now() // backwards through the ids: a row committed after a later one
		for id := box.next; id > 0; id-- {
			at, ok := box.at[id]
			switch {
			case ok && at.After(before):
				late++
			case ok:
				before = at
			}
		}
		require.InDelta(t, counts.Late, late, 1)                                         // the last one may be the last row
		texts := slices.DeleteFunc(box.texts(), func(s string) bool { return s == " " }) // one way to be malformed
		twice := len(texts)
		slices.Sort(texts)
		twice -= len(slices.Compact(texts))
		require.Equal(t, counts.Duplicates, twice)
	})
}

func TestWriterSaysWhatWasCertain(t *testing.T) {
	t.Parallel()
	box := newMemory()
	box.fail = errors.New("gone")
	w := &Writer{Stream: stream(t, Options{Flights: 5}), Mailbox: box, Count: 10}
	counts, err := w.Run(t.Context())
	require.ErrorIs(t, err, box.fail)
	require.Zero(t, counts.Rows)
}

// openMailbox is a database handle on a mailbox of its own.
func openMailbox(t *testing.T) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(dbtest.Mailbox(t))
	require.NoError(t, err)
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// TestWriterNeedsFourConnections: late rows each hold one, and the Writer must not wait for itself.
func TestWriterNeedsFourConnections(t *testing.T) {
	t.Parallel()
	db := openMailbox(t)
	db.SetMaxOpenConns(4)
	w := &Writer{
		Stream: stream(t, Options{Flights: 20}), Mailbox: NewTable(db, "cminmsgs", time.UTC), Count: 400, Faults: AllFaults(),
	}
	counts, err := w.Run(t.Context())
	require.NoError(t, err)
	var rows, last int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*), MAX(CMINMSGS_ID) FROM cminmsgs").Scan(&rows, &last))
	require.Equal(t, counts.Rows, rows)
	require.GreaterOrEqual(t, last, rows+counts.Holes)
}

func TestTable(t *testing.T) {
	t.Parallel()
	db := openMailbox(t)
	ids := func() (out []int64) {
		rows, err := db.QueryContext(t.Context(), "SELECT CMINMSGS_ID FROM cminmsgs WHERE CMINMSGS_STATUS = 'VALID' ORDER BY CMINMSGS_ID")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var id int64
			require.NoError(t, rows.Scan(&id))
			out = append(out, id)
		}
		require.NoError(t, rows.Err())
		return out
	}

	at := time.Date(2026, 11, 30, 16, 30, 5, 0, time.UTC)
	table := NewTable(db, "cminmsgs", time.FixedZone("", 8*60*60))
	require.NoError(t, table.Insert(t.Context(), []Row{{"<MSG>机位</MSG>", at}, {"b", at}}))
	lost, err := table.Begin(t.Context(), Row{"lost", at})
	require.NoError(t, err)
	late, err := table.Begin(t.Context(), Row{"late", at})
	require.NoError(t, err)
	require.NoError(t, table.Insert(t.Context(), []Row{{"c", at}}))
	require.NoError(t, lost.Rollback())
	require.Equal(t, []int64{1, 2, 5}, ids())
	require.NoError(t, late.Commit())
	require.Equal(t, []int64{1, 2, 4, 5}, ids())

	var text, received string
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED FROM cminmsgs WHERE CMINMSGS_ID = 1").Scan(&text, &received))
	require.Equal(t, "<MSG>机位</MSG>", text)
	require.Equal(t, "2026-12-01 00:30:05", received)
}
