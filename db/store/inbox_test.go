package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
)

// newInbox makes a lane of the test's own inside tx.
func newInbox(t *testing.T, tx pgx.Tx, s *store.Store) (lane string, c inbox.Cursor) {
	t.Helper()
	lane = t.Name()
	require.NoError(t, s.EnsureInbox(t.Context(), tx, lane, at))
	require.NoError(t, s.EnsureInbox(t.Context(), tx, lane, at), "twice")
	in, ok, err := s.Inbox(t.Context(), tx, lane)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, store.Inbox{Cursor: inbox.Cursor{Step: 1}}, in)
	return lane, in.Cursor
}

func TestInboxRoundTrip(t *testing.T) {
	t.Parallel()
	s, tx := store.New(time.UTC), dbtest.Tx(t)
	_, ok, err := s.Inbox(t.Context(), tx, "no such lane")
	require.NoError(t, err)
	require.False(t, ok)
	lane, before := newInbox(t, tx, s)

	hole := func(first, last int64, age time.Duration) inbox.Hole {
		return inbox.Hole{Range: inbox.Range{First: first, Last: last}, FirstSeen: at.Add(-age)}
	}
	after := inbox.Cursor{W: 10, Step: 3, ReceivedAt: at, Holes: []inbox.Hole{hole(11, 12, 1), hole(20, 29, time.Hour)}}
	plan := inbox.Plan{Cursor: after, Released: []inbox.Hole{hole(1, 3, time.Hour)}}
	require.NoError(t, s.SaveInbox(t.Context(), tx, lane, before, plan, at))
	in, _, err := s.Inbox(t.Context(), tx, lane)
	require.NoError(t, err)
	requireSame(t, after, in.Cursor)
	passed, _, err := s.PassedHoles(t.Context(), tx, lane, 0, 10)
	require.NoError(t, err)
	require.Len(t, passed, 1)
	require.Equal(t, inbox.Range{First: 1, Last: 3}, passed[0].Range)

	same, err := s.LockInbox(t.Context(), tx, lane, after)
	require.NoError(t, err)
	require.True(t, same)
	same, err = s.LockInbox(t.Context(), tx, lane, before)
	require.NoError(t, err)
	require.False(t, same, "another watermark")

	require.NoError(t, s.ReplacePassedHoles(t.Context(), tx, lane, 0, passed, []inbox.Hole{hole(1, 1, time.Hour), hole(3, 3, time.Hour)}, at))
	passed, _, err = s.PassedHoles(t.Context(), tx, lane, 0, 1)
	require.NoError(t, err)
	require.Equal(t, int64(3), passed[0].First, "the newest come first when there are too many")

	first, err := s.StopInbox(t.Context(), tx, lane, 0, inbox.IDRegression, at)
	require.NoError(t, err)
	require.True(t, first)
	first, err = s.StopInbox(t.Context(), tx, lane, 0, inbox.IDRegression, at)
	require.NoError(t, err)
	require.False(t, first)
	same, err = s.LockInbox(t.Context(), tx, lane, after)
	require.NoError(t, err)
	require.False(t, same, "stopped")
}

func requireSame(t *testing.T, want, got inbox.Cursor) {
	t.Helper()
	require.Equal(t, want.W, got.W)
	require.Equal(t, want.Step, got.Step)
	require.True(t, want.ReceivedAt.Equal(got.ReceivedAt))
	require.Len(t, got.Holes, len(want.Holes))
	for i := range want.Holes {
		require.Equal(t, want.Holes[i].Range, got.Holes[i].Range)
		require.WithinDuration(t, want.Holes[i].FirstSeen, got.Holes[i].FirstSeen, time.Microsecond)
	}
}

func TestRawTexts(t *testing.T) {
	t.Parallel()
	s, tx := store.New(time.UTC), dbtest.Tx(t)
	const base = 7_000_000_000
	text := "<MSG>" + strings.Repeat("\u822a\u73ed ", 4000) + "</MSG>"
	msg := func(id int64, text string) inbox.Message {
		return inbox.Message{Row: inbox.Row{ID: base + id}, Text: text, Size: len(text)}
	}
	large := inbox.Message{Row: inbox.Row{ID: base + 3}, Size: 12 << 20, Oversize: true}
	rows := []store.Incoming{s.Incoming(msg(1, text)), s.Incoming(msg(2, "")), s.Incoming(large), store.Gone(inbox.Row{ID: base + 4})}
	require.Less(t, rows[0].PackedBytes(), len(text)/10, "packed")
	ids, err := s.Enqueue(t.Context(), tx, 0, rows, false, at)
	require.NoError(t, err)
	require.Len(t, ids, 4)
	again, err := s.Enqueue(t.Context(), tx, 0, append(rows, s.Incoming(msg(5, "x"))), true, at)
	require.NoError(t, err)
	require.Equal(t, []int64{base + 5}, again, "only what is new")

	at := make([]message.Position, 6)
	for i := range at {
		at[i].ID = base + int64(i)
	}
	raws, err := s.RawTexts(t.Context(), tx, at)
	require.NoError(t, err)
	require.Len(t, raws, 4, "not the one that was gone, nor one never seen")
	require.Equal(t, text, string(raws[at[1]].Text))
	require.Equal(t, store.Raw{Text: []byte{}}, raws[at[2]], "blank is not missing")
	require.Equal(t, store.Raw{Oversize: true, SizeBytes: 12 << 20}, raws[at[3]])
}

// The reads of the hot loops are served by the partial indexes, however many messages are finished (style "SQL").
func TestDebtQueriesUseTheirIndex(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO proc_state (msg_id, state, created_at, updated_at, finished_at, backfill_at, backfill_next_at)
		SELECT g, 'SUCCEEDED', a, a, a, CASE WHEN g % 5000 > 0 THEN a END, CASE WHEN g % 5000 = 0 THEN a END FROM generate_series(1, 100000) g, (SELECT $1::timestamptz AS a) x`, at)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "ANALYZE proc_state")
	require.NoError(t, err)
	const owed = " FROM proc_state WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL"
	for _, sql := range []string{
		"SELECT msg_id" + owed + " AND backfill_next_at <= now() ORDER BY backfill_attempts, msg_id LIMIT 500 FOR UPDATE SKIP LOCKED",
		"SELECT backfill_next_at" + owed + " ORDER BY backfill_next_at LIMIT 1",
		"SELECT EXISTS (SELECT 1" + owed + ")",
		"SELECT count(*), min(finished_at)" + owed,
	} {
		rows, err := pool.Query(t.Context(), "EXPLAIN "+sql)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		require.Contains(t, plan, "proc_state_backfill_due_idx", sql)
		require.NotContains(t, plan, "Seq Scan on proc_state", sql)
	}
}
