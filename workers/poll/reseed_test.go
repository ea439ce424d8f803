package poll

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/inbox"
)

// reseed does what the operator's endpoint does.
func (r *rig) reseed(from inbox.Cutover) (closed store.Closed, err error) {
	re := Reseeder{Lane: lane, Store: r.deps.Store, Mailbox: r.Desk, Server: r.Desk, Now: r.deps.Now}
	start, err := re.Look(r.t.Context(), from)
	require.NoError(r.t, err)
	err = db.InTx(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		closed, err = re.Reseed(r.t.Context(), tx, start)
		return err
	})
	return closed, err
}

func (r *rig) exec(query string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), query, args...)
	require.NoError(r.t, err)
}

// finish ends all messages as the head does, with their marks owed.
func (r *rig) finish() {
	r.t.Helper()
	r.exec("UPDATE proc_state SET state = 'SUCCEEDED', finished_at = $1, backfill_next_at = $1 WHERE state = 'PENDING'", r.clock)
}

// TestK14_Reseed: after an alarm the operator begins a new generation: reused ids are taken over, what was before is in the
// archive, its marks are given up, and the lane can do all that once more.
func TestK14_Reseed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2, 3)
	r.drainAll()
	r.Exec("TRUNCATE TABLE cminmsgs")
	r.Put(1, "<MSG>new</MSG>", "2026-11-30 09:05:00")
	r.clock = r.clock.Add(10 * time.Minute)
	r.drainAll()
	require.Equal(t, inbox.IDRegression, r.at().Stopped)

	_, err := r.reseed(inbox.CutoverMin)
	require.ErrorIs(t, err, store.ErrUnfinished)
	r.finish()
	closed, err := r.reseed(inbox.CutoverMin)
	require.NoError(t, err)
	require.Equal(t, store.Closed{Generation: 1, Archived: 3, Abandoned: 3}, closed)
	require.Equal(t, "0 SUCCEEDED generation-closed", r.one("SELECT DISTINCT generation || ' ' || state || ' ' || backfill_abandoned_reason FROM proc_state_hst WHERE archived_at = backfill_abandoned_at"))
	require.Empty(t, r.at().Stopped)
	require.Equal(t, r.clock, r.at().SeededAt.UTC())

	r.restart(func(c *Config) { c.Cutover = inbox.CutoverMax })
	r.drainAll()
	require.Equal(t, []string{"1"}, r.queued(), "seeded by the reseed, not again by the configuration")
	require.Equal(t, "1", r.one("SELECT generation::text FROM proc_state"))
	require.Equal(t, "1,2,3,1:1", r.one("SELECT string_agg(CASE generation WHEN 0 THEN '' ELSE generation || ':' END || msg_id, ',' ORDER BY generation, msg_id) FROM msg_raw"))

	r.clock = r.clock.Add(time.Minute)
	r.drainAll()
	require.Empty(t, r.at().Stopped, "what is there now is what we hold now")
	r.finish()
	closed, err = r.reseed(inbox.CutoverMax)
	require.NoError(t, err)
	require.Equal(t, store.Closed{Generation: 2, Archived: 1, Abandoned: 1}, closed)
	r.putAll(2)
	r.drainAll()
	require.Equal(t, []string{"2"}, r.queued())
}

// TestReseed_notAhead: an id above the highest there is would let the lane skip what comes. It is refused, also
// while the mailbox is empty; every id there is will do, and so will the names.
func TestReseed_notAhead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	re := Reseeder{Lane: lane, Store: r.deps.Store, Mailbox: r.Desk, Server: r.Desk, Now: r.deps.Now}
	look := func(from inbox.Cutover) (int64, error) {
		start, err := re.Look(t.Context(), from)
		return start.W, err
	}
	for _, from := range []inbox.Cutover{"1", "9223372036854775807"} {
		_, err := look(from)
		require.ErrorIs(t, err, inbox.ErrAhead, from)
	}
	r.putAll(5, 6, 7)
	for _, from := range []inbox.Cutover{"8", "9223372036854775807"} {
		_, err := look(from)
		require.ErrorIs(t, err, inbox.ErrAhead, from)
		require.ErrorContains(t, err, "the highest is 7")
	}
	for from, want := range map[inbox.Cutover]int64{"0": 0, "3": 3, "7": 7, inbox.CutoverZero: 0, inbox.CutoverMin: 4, inbox.CutoverMax: 7} {
		w, err := look(from)
		require.NoError(t, err, from)
		require.Equal(t, want, w, from)
	}
}

// TestReseed_allOrNothing: an error after the move, as a crash, leaves everything as it was; what is in the operator's way
// refuses him and moves nothing.
func TestReseed_allOrNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 5)
	r.drainAll()
	r.finish()
	boom := errors.New("boom")
	re := Reseeder{Lane: lane, Store: r.deps.Store, Mailbox: r.Desk, Server: r.Desk, Now: r.deps.Now}
	err := db.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := re.Reseed(t.Context(), tx, inbox.Start{})
		require.NoError(t, err)
		return boom
	})
	require.ErrorIs(t, err, boom)
	r.exec("UPDATE proc_state SET backfill_attempts = 1, backfill_next_at = $1", r.clock.Add(time.Second))
	_, err = r.reseed(inbox.CutoverMin)
	require.ErrorIs(t, err, store.ErrMarking, "a mark under way may still land")
	require.Equal(t, "0 2 0", r.one("SELECT generation || ' ' || committed_up_to + 1 || ' ' || (SELECT count(*) FROM proc_state_hst) FROM inbox_cursor"))
	require.Len(t, r.at().Cursor.Holes, 1)
	r.clock = r.clock.Add(time.Second)
	_, err = r.reseed(inbox.CutoverMin)
	require.NoError(t, err, "the claim has run out")
}

// TestReseed_putBackMeanwhile: a replay that commits while the archive move waits for its row refuses the reseed.
func TestReseed_putBackMeanwhile(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2)
	r.drainAll()
	r.finish()
	replay, err := r.pool.Begin(t.Context())
	require.NoError(t, err)
	defer replay.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // over by then
	_, err = replay.Exec(t.Context(), "UPDATE proc_state SET state = 'PENDING', finished_at = NULL, backfill_next_at = NULL WHERE msg_id = 2")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := r.reseed(inbox.CutoverMin)
		done <- err
	}()
	require.Eventually(t, func() bool {
		return r.one("SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == "1"
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, replay.Commit(t.Context()))
	require.ErrorIs(t, <-done, store.ErrUnfinished)
	require.Equal(t, "2", r.one("SELECT count(*)::text FROM proc_state"))
}

// TestReseed_roundUnderWay: a round that looked before the reseed writes nothing after it.
func TestReseed_roundUnderWay(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1)
	r.drainAll()
	r.finish()
	r.putAll(2)
	before := r.at()
	look, err := r.poll.read(t.Context(), before.Cursor)
	require.NoError(t, err)
	_, err = r.reseed("1")
	require.NoError(t, err)
	require.ErrorIs(t, r.poll.commit(t.Context(), r.fence, before, look), errMoved)
	r.drainAll()
	require.Equal(t, "1:2", r.one("SELECT string_agg(generation || ':' || msg_id, ',') FROM proc_state"))
}

// TestK14_RegisteredAhead: what our own endpoint registered above the watermark is released when the lane stops: it was
// accepted, and a reseed needs it finished.
func TestK14_RegisteredAhead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1)
	r.drainAll()
	r.putAll(4)
	reg := Registrar{Lane: lane, Store: r.deps.Store, Waker: r, Now: r.deps.Now}
	register := func(id int64) {
		require.NoError(t, db.InTx(t.Context(), r.pool, func(tx pgx.Tx) error { return reg.Register(t.Context(), tx, id, "<MSG>4</MSG>", r.clock) }))
	}
	register(4)
	r.drainAll()
	require.Equal(t, int64(1), r.at().Cursor.W)
	r.Exec("TRUNCATE TABLE cminmsgs")
	r.Put(1, "<MSG>new</MSG>", "2026-11-30 09:05:00")
	r.clock = r.clock.Add(10 * time.Minute)
	r.drainAll()
	require.Equal(t, inbox.IDRegression, r.at().Stopped)
	require.Equal(t, int64(4), r.at().Cursor.W)
	register(9)
	require.Equal(t, []string{"1", "4"}, r.queued(), "a stopped lane registers nothing")
}

// TestK14_BeforeItIsPassed: ids that start again and have passed the watermark when they are seen first are not taken for
// what follows.
func TestK14_BeforeItIsPassed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1, 2, 3)
	r.drainAll()
	r.Exec("TRUNCATE TABLE cminmsgs")
	for id := int64(1); id <= 5; id++ {
		r.Put(id, "<MSG>new</MSG>", "2026-11-30 09:00:05")
	}
	r.clock = r.clock.Add(10 * time.Second) // long before the next look back
	r.drainAll()
	require.Equal(t, inbox.IDRegression, r.at().Stopped)
	require.Equal(t, []string{"1", "2", "3"}, r.queued())
}

// TestK14_DateInTheFuture: a row whose date lies ahead of our clock is looked into once and stops nothing.
func TestK14_DateInTheFuture(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putAll(1)
	r.Put(2, "<MSG>2</MSG>", "2026-12-24 00:00:00")
	r.drainAll()
	r.putAll(3)
	r.drainAll()
	r.drainAll()
	require.Empty(t, r.at().Stopped)
	require.Equal(t, []string{"1", "2", "3"}, r.queued())
}

// message is a text with an identity of its own.
func withSEQN(seqn, body string) string {
	return "<MSG><META><SNDR>AODB</SNDR><SEQN>" + seqn + "</SEQN><DTTM>20261130085900</DTTM><TYPE>FLOP</TYPE><STYP>STND</STYP></META>" + body + "</MSG>"
}

// TestK14_Edited: the owner may edit an old row in its place; that is told, once, and stops nothing. Another message under
// the id does, though it has the same date.
func TestK14_Edited(t *testing.T) {
	t.Parallel()
	const received = "2026-11-30 08:59:00"
	for name, tc := range map[string]struct {
		text string
		stop inbox.Stop
	}{
		"body edited":      {withSEQN("7", "<FLOP>other</FLOP>"), ""},
		"emptied":          {"", ""},
		"another message":  {withSEQN("8", "<FLOP/>"), inbox.IDRegression},
		"no message":       {"<MSG>cut", inbox.IDRegression},
		"nothing but META": {withSEQN("7", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.Put(1, withSEQN("7", "<FLOP/>"), received)
			r.drainAll()
			r.Exec("UPDATE cminmsgs SET CMINMSGS_CLOB_MSG = ? WHERE CMINMSGS_ID = 1", tc.text)
			for range 3 {
				r.clock = r.clock.Add(time.Minute)
				r.drainAll()
			}
			require.Equal(t, tc.stop, r.at().Stopped)
			if tc.stop == "" {
				require.Equal(t, 1, countOf(r, "mailbox row edited"))
			}
		})
	}
}
