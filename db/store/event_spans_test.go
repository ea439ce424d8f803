package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// lost counts the events that wait or are dead and lie in no span of theirs.
const lost = `SELECT count(*) FROM msg_event e WHERE e.state <> 'SENT' AND NOT EXISTS (
	SELECT FROM event_span s WHERE s.target = e.target AND s.state = e.state AND e.event_id BETWEEN s.first_id AND s.last_id)`

// number asks for one.
func number(t *testing.T, q db.Querier, sql string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, q.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// ids asks for a column of them.
func ids(t *testing.T, q db.Querier, sql string, args ...any) []int64 {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return all
}

// Whatever is done to events, and by whomever, what waits is what the table says waits, in order, and nothing of it is out of reach.
func TestWhatWaitsIsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	const steps = 250
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tx, s, rnd := alone(t), store.New(time.UTC), rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test's dice
			for step := range steps {
				done := anything(t, s, tx, rnd)
				require.Zero(t, number(t, tx, lost), "step %d: %s", step, done)
				for _, target := range outbox.AllTargets() {
					agrees(t, s, tx, target, rnd, fmt.Sprintf("step %d: %s", step, done))
				}
				require.Zero(t, number(t, tx, lost), "step %d: looking", step)
			}
			for _, target := range outbox.AllTargets() { // all of it goes, and no span is left
				for left := true; left; {
					events, err := s.PendingEvents(t.Context(), tx, target, 0, 100)
					require.NoError(t, err)
					sent := make([]store.Delivered, len(events))
					for i, e := range events {
						sent[i] = store.Delivered{ID: e.ID, FLID: e.FLID}
					}
					require.NoError(t, s.MarkSent(t.Context(), tx, target, sent, at))
					left = len(events) > 0
				}
				waits, err := s.EventsWait(t.Context(), tx, target, 0)
				require.NoError(t, err)
				require.False(t, waits)
			}
			require.Zero(t, number(t, tx, "SELECT count(*) FROM event_span WHERE state = 'PENDING'"))
		})
	}
}

// anything does one thing to events, as the program does it or by hand, and says what.
func anything(t *testing.T, s *store.Store, tx pgx.Tx, rnd *rand.Rand) string {
	t.Helper()
	target := outbox.AllTargets()[rnd.IntN(2)]
	some := func(state outbox.State, n int) []int64 {
		return ids(t, tx, "SELECT event_id FROM msg_event WHERE target = $1 AND state = $2 ORDER BY md5((event_id + $3::bigint)::text) LIMIT $4", target, state, rnd.Int64N(1<<32), n)
	}
	exec := func(sql string, args ...any) string {
		_, err := tx.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
		return sql
	}
	switch rnd.IntN(10) {
	case 0, 1, 2:
		var events []outbox.Event
		for i := range rnd.Int64N(40) + 1 {
			events = append(events, event(outbox.AllTargets()[rnd.IntN(2)], i, i%7, i))
		}
		require.NoError(t, s.InsertEvents(t.Context(), tx, events, at))
		return "insert"
	case 3:
		return exec("SELECT setval('msg_event_event_id_seq', nextval('msg_event_event_id_seq') + $1)", rnd.Int64N(3000))
	case 4, 5:
		waiting, err := s.WaitingEvents(t.Context(), tx, target, 50)
		require.NoError(t, err)
		var sent []store.Delivered
		for _, w := range waiting {
			if rnd.IntN(8) > 0 {
				sent = append(sent, store.Delivered{ID: w.ID, FLID: w.FLID})
			}
		}
		require.NoError(t, s.MarkSent(t.Context(), tx, target, sent, at))
		return "send"
	case 6:
		var refused []store.Refusal
		for i, id := range some(outbox.Pending, 6) {
			r := store.Refusal{ID: id, Fate: outbox.Refused, Err: errors.New("no")}
			if i%2 == 0 {
				r.Next = at.Add(time.Minute)
			}
			refused = append(refused, r)
		}
		require.NoError(t, s.MarkFailed(t.Context(), tx, refused))
		return "refuse"
	case 7:
		require.NoError(t, s.RequeueEvents(t.Context(), tx, some(outbox.Dead, 5)))
		return "requeue"
	case 8:
		return exec("UPDATE msg_event SET state = $1 WHERE event_id = ANY($2)", outbox.AllStates()[rnd.IntN(3)],
			append(append(some(outbox.Sent, 4), some(outbox.Dead, 2)...), some(outbox.Pending, 4)...))
	default:
		return exec("DELETE FROM msg_event WHERE event_id = ANY($1)", append(some(outbox.Sent, 3), some(outbox.Pending, 1)...))
	}
}

// agrees compares every look at a target's events with the table.
func agrees(t *testing.T, s *store.Store, tx pgx.Tx, target outbox.Target, rnd *rand.Rand, when string) {
	t.Helper()
	all := ids(t, tx, "SELECT event_id FROM msg_event WHERE target = $1 AND state = 'PENDING' ORDER BY 1", target)
	dead := ids(t, tx, "SELECT event_id FROM msg_event WHERE target = $1 AND state = 'DEAD' ORDER BY 1", target)
	b, err := s.EventBacklog(t.Context(), tx, target)
	require.NoError(t, err)
	require.Equal(t, []int64{int64(len(all)), int64(len(dead))}, []int64{b.Pending, b.Dead}, when)
	found, err := s.DeadEvents(t.Context(), tx, target, 0, 1<<40, 10_000)
	require.NoError(t, err)
	require.ElementsMatch(t, dead, found, when)

	limit, after := rnd.IntN(30)+1, int64(0)
	if len(all) > 0 && rnd.IntN(2) == 0 {
		after = all[rnd.IntN(len(all))] - rnd.Int64N(2)
	}
	var want []int64
	for _, id := range all {
		if id > after && len(want) < limit {
			want = append(want, id)
		}
	}
	events, err := s.PendingEvents(t.Context(), tx, target, after, limit)
	require.NoError(t, err)
	var got []int64
	for _, e := range events {
		got = append(got, e.ID)
	}
	require.Equal(t, want, got, when)
	waits, err := s.EventsWait(t.Context(), tx, target, after)
	require.NoError(t, err)
	require.True(t, waits || len(want) == 0, when)
	waiting, err := s.WaitingEvents(t.Context(), tx, target, limit)
	require.NoError(t, err)
	require.Len(t, waiting, min(limit, len(all)), when)
}

// An event that is made to wait again while the span it once lay in is being dropped does not go with it, whoever commits first.
func TestDroppingASpanLosesNoEvent(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"operator", "deliverer"} {
		t.Run(first+" commits first", func(t *testing.T) {
			t.Parallel()
			pool, s := dbtest.New(t), store.New(time.UTC)
			require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				return s.InsertEvents(t.Context(), tx, []outbox.Event{event(outbox.Msg, 1, 1, 1), event(outbox.Msg, 2, 1, 2)}, at)
			}))
			mine := ids(t, pool, "UPDATE msg_event SET state = CASE WHEN msg_id = 1 THEN 'DEAD' ELSE 'PENDING' END RETURNING event_id")
			operator, err := pool.Begin(t.Context())
			require.NoError(t, err)
			deliverer, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = operator.Rollback(context.WithoutCancel(t.Context())) }()
			defer func() { _ = deliverer.Rollback(context.WithoutCancel(t.Context())) }()

			_, err = operator.Exec(t.Context(), "UPDATE msg_event SET state = 'PENDING' WHERE state = 'DEAD'")
			require.NoError(t, err)
			require.NoError(t, s.MarkSent(t.Context(), deliverer, outbox.Msg, []store.Delivered{{ID: mine[1], FLID: 1}}, at))
			ends := []pgx.Tx{operator, deliverer}
			if first == "deliverer" {
				ends = []pgx.Tx{deliverer, operator}
			}
			for _, tx := range ends {
				require.NoError(t, tx.Commit(t.Context()))
			}
			events, err := s.PendingEvents(t.Context(), pool, outbox.Msg, 0, 10)
			require.NoError(t, err)
			require.Len(t, events, 1)
			require.Equal(t, mine[0], events[0].ID)
		})
	}
}

// Marking an event rewrites its row in place and moves nothing in any index: this is what the table's fillfactor is for, and that
// no index has a column that marking changes.
func TestMarksAreWrittenInPlace(t *testing.T) {
	t.Parallel()
	for _, size := range []int{150, 700, 1900} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			tx, s := dbtest.Tx(t), store.New(time.UTC)
			const batches, batch = 6, 200
			for n := range int64(batches * batch) {
				text := make([]byte, size/2)
				for i := range text {
					text[i] = byte(n*31 + int64(i)*int64(i)) // nothing that compresses
				}
				payload := json.RawMessage(fmt.Sprintf(`{"x":"%x"}`, text))
				a, b := event(outbox.Msg, n, n, n), event(outbox.Schd, n, n, n)
				a.Payload, b.Payload = payload, payload
				require.NoError(t, s.InsertEvents(t.Context(), tx, []outbox.Event{a, b}, at))
			}
			const updates, hot = "SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'msg_event'", "SELECT n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'msg_event'"
			all, inPlace := number(t, tx, updates), number(t, tx, hot)
			for _, target := range outbox.AllTargets() {
				for range batches {
					events, err := s.PendingEvents(t.Context(), tx, target, 0, batch)
					require.NoError(t, err)
					sent := make([]store.Delivered, batch)
					for i, e := range events {
						sent[i] = store.Delivered{ID: e.ID, FLID: e.FLID, Place: outbox.Place{Partition: 1, Offset: e.ID}}
					}
					require.NoError(t, s.MarkSent(t.Context(), tx, target, sent, at))
				}
			}
			all, inPlace = number(t, tx, updates)-all, number(t, tx, hot)-inPlace
			require.EqualValues(t, 2*batches*batch, all)
			require.Greater(t, inPlace, all*90/100)
		})
	}
}

// What waits and what is dead is found among 100,000 events that are sent, by reading few of them: also one that is put back long
// after its time, and while PostgreSQL believes that everything waits or nothing.
func TestWhatWaitsIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	for name, believed := range map[string]string{
		"nothing waits":    "SELECT",
		"everything waits": "UPDATE msg_event SET state = 'PENDING'; ANALYZE msg_event, event_span; UPDATE msg_event SET state = 'SENT'; DELETE FROM event_span",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tx, s := alone(t), store.New(time.UTC)
			for _, sql := range []string{
				`INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
				 SELECT g, CASE g % 2 WHEN 0 THEN 'KAFKA:msg' ELSE 'KAFKA:schd' END, g, g % 999, 'k', 'UPSERT', 1, 'K', '{}', 'SENT', now() FROM generate_series(1, 100000) g`,
				"ANALYZE msg_event, event_span", believed,
				"UPDATE msg_event SET state = 'PENDING' WHERE event_id IN (2, 3) OR event_id > 99900",
				"UPDATE msg_event SET state = 'DEAD' WHERE event_id % 10000 IN (4, 5)",
			} {
				for _, one := range strings.Split(sql, ";") {
					_, err := tx.Exec(t.Context(), one)
					require.NoError(t, err)
				}
			}
			for _, c := range []struct {
				what string
				most int64
				do   func() (rows int, err error)
				want int
			}{
				{"backlog", 200, func() (int, error) {
					b, err := s.EventBacklog(t.Context(), tx, outbox.Msg)
					return int(b.Pending + b.Dead), err
				}, 61},
				{"pending", 200, func() (int, error) {
					e, err := s.PendingEvents(t.Context(), tx, outbox.Msg, 0, 500)
					return len(e), err
				}, 51},
				{"waiting", 200, func() (int, error) {
					e, err := s.WaitingEvents(t.Context(), tx, outbox.Schd, 500)
					return len(e), err
				}, 51},
				{"dead", 60, func() (int, error) {
					e, err := s.DeadEvents(t.Context(), tx, "", 0, 1<<40, 500)
					return len(e), err
				}, 20},
				{"close the dead", 60, func() (int, error) {
					newer := []store.Delivered{{ID: 100_000, FLID: 5}, {ID: 99_998, FLID: 10_005 % 999}}
					return 0, s.MarkSent(t.Context(), tx, outbox.Schd, newer, at)
				}, 0},
				{"nothing to find", 10, func() (int, error) {
					e, err := s.PendingEvents(t.Context(), tx, outbox.Msg, 100_000, 500)
					return len(e), err
				}, 0},
			} {
				before := touched(t, tx, "msg_event")
				n, err := c.do()
				require.NoError(t, err, c.what)
				require.Equal(t, c.want, n, c.what)
				require.LessOrEqual(t, touched(t, tx, "msg_event")-before, c.most, c.what)
			}
			require.EqualValues(t, 2, number(t, tx, "SELECT count(*) FROM msg_event WHERE state = 'SENT' AND superseded_by IS NOT NULL"))
		})
	}
}

// Events that nobody can find, because they were written with the triggers off, are found by whoever looks through all of them.
func TestMendSpans(t *testing.T) {
	t.Parallel()
	tx, s := dbtest.Tx(t), store.New(time.UTC)
	var in []outbox.Event
	for i := range int64(2500) {
		e := event(outbox.Msg, i, i, i)
		e.Message = message.Position{ID: i}
		in = append(in, e)
	}
	require.NoError(t, s.InsertEvents(t.Context(), tx, in, at))
	_, err := tx.Exec(t.Context(), "UPDATE msg_event SET state = CASE msg_id % 3 WHEN 0 THEN 'DEAD' WHEN 1 THEN 'PENDING' ELSE 'SENT' END")
	require.NoError(t, err)
	mend := func() (all int64) {
		for last := int64(0); ; {
			mended, next, err := s.MendSpans(t.Context(), tx, last, 1000)
			require.NoError(t, err)
			all += mended
			if next == 0 {
				return all
			}
			last = next
		}
	}
	require.Zero(t, mend())
	_, err = tx.Exec(t.Context(), "DELETE FROM event_span")
	require.NoError(t, err)
	require.EqualValues(t, 1667, mend())
	require.Zero(t, number(t, tx, lost))
	require.Zero(t, mend())
}

// A long outage in which events came one by one leaves a span for each: the first are read, and the number of all is known, without
// going through all events; also while PostgreSQL believes that there is no span.
func TestSpansOfALongOutage(t *testing.T) {
	t.Parallel()
	tx, s := alone(t), store.New(time.UTC)
	for _, sql := range []string{
		"ANALYZE event_span",
		`INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, created_at)
		 SELECT g, 'KAFKA:msg', g, g % 999, 'k', 'UPSERT', 1, 'K', '{}', now() FROM generate_series(1, 30000) g`,
		"DELETE FROM event_span",
		"INSERT INTO event_span (target, state, first_id, last_id, amount) SELECT target, state, event_id, event_id, 1 FROM msg_event",
	} {
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	events := touched(t, tx, "msg_event")
	b, err := s.EventBacklog(t.Context(), tx, outbox.Msg)
	require.NoError(t, err)
	require.EqualValues(t, 30_000, b.Pending)
	require.LessOrEqual(t, touched(t, tx, "msg_event")-events, int64(10_000))

	const batch = 50
	events = touched(t, tx, "msg_event")
	spans := touched(t, tx, "event_span")
	waiting, err := s.PendingEvents(t.Context(), tx, outbox.Msg, 0, batch)
	require.NoError(t, err)
	require.Len(t, waiting, batch)
	sent := make([]store.Delivered, batch)
	for i, e := range waiting {
		sent[i] = store.Delivered{ID: e.ID, FLID: e.FLID}
	}
	require.NoError(t, s.MarkSent(t.Context(), tx, outbox.Msg, sent, at))
	require.LessOrEqual(t, touched(t, tx, "msg_event")-events, int64(4*batch))
	require.LessOrEqual(t, touched(t, tx, "event_span")-spans, int64(4*batch))
	require.EqualValues(t, 29_950, number(t, tx, "SELECT count(*) FROM event_span"))
}
