package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/request"
)

// crowd is 100,000 rows in each table that lists go through, one a second; what is rare is as rare as in life.
const crowd = `
INSERT INTO inbox_cursor (lane, committed_up_to, updated_at) VALUES ('default', 300000, now());
CREATE TEMPORARY TABLE life ON COMMIT DROP AS
SELECT n, 200000 + n AS id, timestamptz '2026-11-01 00:00Z' + n * interval '1 second' AS at,
       CASE WHEN n > 99950 THEN 'PENDING' WHEN n % 1000 = 0 THEN 'DEAD' WHEN n % 20 = 1 THEN 'SKIPPED' ELSE 'SUCCEEDED' END AS state,
       CASE WHEN n % 2000 = 0 THEN 'EXHAUSTED' WHEN n % 1000 = 0 THEN 'MALFORMED' END AS class,
       CASE WHEN n % 2000 = 0 THEN 'INFRA' END AS root,
       CASE WHEN n % 1000 = 0 THEN 'decode: field ' || n END AS error,
       CASE WHEN n % 500 = 7 THEN 'SCHD' ELSE 'FLOP' END AS type,
       CASE WHEN n % 500 = 7 THEN 'DNLD' WHEN n % 2000 = 9 THEN 'FDEL' ELSE 'S' || n % 40 END AS styp,
       n % 5000 = 3 AS late, CASE WHEN n % 10000 = 11 THEN 'content' END AS reuse,
       n % 5000 = 5 AS abandoned, n BETWEEN 99700 AND 99950 AS owed
FROM generate_series(1, 100000) n;
INSERT INTO proc_state (msg_id, state, error_class, root_error_class, last_error, type, styp, late, identity_reuse, received_at, created_at, updated_at,
                        finished_at, backfill_at, backfill_next_at, backfill_abandoned_at)
SELECT id, state, class, root, error, type, styp, late, reuse, at, at, at, CASE WHEN state <> 'PENDING' THEN at END,
       CASE WHEN state <> 'PENDING' AND NOT abandoned AND NOT owed THEN at END, CASE WHEN owed THEN at END, CASE WHEN abandoned THEN at END
FROM life;
INSERT INTO proc_state_hst (msg_id, state, error_class, root_error_class, last_error, type, styp, late, identity_reuse, received_at, created_at, updated_at,
                            finished_at, backfill_at, backfill_abandoned_at, archived_at)
SELECT id - 100000, CASE state WHEN 'PENDING' THEN 'SUCCEEDED' ELSE state END, class, root, error, type, styp, late, reuse,
       at - interval '2 days', at, at, at, CASE WHEN NOT abandoned THEN at END, CASE WHEN abandoned THEN at END, at
FROM life;
INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
SELECT id, CASE n % 2 WHEN 0 THEN 'KAFKA:msg' ELSE 'KAFKA:schd' END, id, n % 1000, '1', 'UPSERT', 1, 'FLOP-PSDT', '{}',
       CASE WHEN n > 99950 THEN 'PENDING' WHEN n % 2000 = 0 THEN 'DEAD' ELSE 'SENT' END, at
FROM life;
INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload, state, attempts, created_at, archived_at)
SELECT id - 100000, CASE n % 2 WHEN 0 THEN 'KAFKA:msg' ELSE 'KAFKA:schd' END, id - 100000, 0, n % 1000, '1', 'UPSERT', 1, 'FLOP-PSDT', '', '{}',
       CASE WHEN n % 2000 = 0 THEN 'DEAD' ELSE 'SENT' END, 0, at - interval '2 days', at
FROM life;
INSERT INTO flight_change (flid, msg_id, kind, state_version, dttm, before, fields, changed_at)
SELECT n % 1000, id - n % 2 * 100000, 'FLOP-STND', 1, at, '{}', '{}', at FROM life;
INSERT INTO req_track (kind, state, registered_at)
SELECT 'RQRD-K' || translate((n % 14)::text, '0123456789', 'ABCDEFGHIJ') || CASE WHEN n % 14 < 10 THEN 'XX' ELSE 'X' END,
       CASE WHEN n % 1000 = 0 THEN 'EXPIRED' ELSE 'DONE' END, at FROM life;
INSERT INTO ops_audit (at, actor, action) SELECT at, CASE WHEN n % 5000 = 0 THEN 'olga' ELSE 'head' END, CASE WHEN n % 5000 = 1 THEN 'replay' ELSE 'answer' END FROM life;
ANALYZE inbox_cursor, proc_state, proc_state_hst, msg_event, msg_event_hst, flight_change, req_track, ops_audit;
`

// Whatever is asked for, a page of a list looks at a few thousand rows and not at all there are: plans are chosen by PostgreSQL
// from statistics of 100,000 rows, and what each scan touched is counted, not timed. K10's archive doubles the tables.
func TestListsTouchFewRows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tx, err := dbtest.New(t).Begin(t.Context()) // a database of its own: sequences are not rolled back
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }() // the pool waits for it
	_, err = tx.Exec(t.Context(), crowd)
	require.NoError(t, err)
	day := func(d, h int) time.Time { return time.Date(2026, 11, d, h, 0, 0, 0, time.UTC) }
	old := store.Page{To: day(1, 2), Limit: 101}
	hour := store.Page{From: day(1, 5), To: day(1, 6), Limit: 101}
	far := store.Page{After: store.Place{At: day(1, 3), ID: 200_000 + 3*3600}, Limit: 101}
	top := store.Page{Limit: 101}
	for name, f := range map[string]store.MessageFilter{
		"all": {Page: top}, "a far page": {Page: far}, "before a time": {Page: old}, "an hour": {Page: hour}, "the archive's": {Page: top, Archived: new(true)},
		"waiting": {Page: top, State: message.Pending}, "waiting, long ago": {Page: old, State: message.Pending},
		"dead": {Page: top, State: message.Dead}, "dead before a time": {Page: old, State: message.Dead}, "skipped": {Page: top, State: message.Skipped},
		"succeeded": {Page: far, State: message.Succeeded}, "failed": {Page: top, State: message.Failed},
		"class": {Page: top, Class: fault.Malformed}, "root class": {Page: top, Class: fault.Infra}, "class nobody has": {Page: top, Class: fault.CodecError},
		"rare type": {Page: top, Type: "SCHD"}, "rare subtype": {Page: old, Type: "FLOP", Subtype: "FDEL"}, "usual type": {Page: far, Type: "FLOP"},
		"type nobody has": {Page: top, Type: "XXXX"}, "type and state": {Page: top, Type: "FLOP", State: message.Dead},
		"error": {Page: top, Error: "FIELD 7000"}, "error nobody has": {Page: top, Error: "nothing"}, "error and class": {Page: top, Error: "field", Class: fault.Malformed},
		"late": {Page: top, Late: true}, "reused": {Page: top, Reuse: message.ReuseContent},
		"owed": {Page: top, Mark: store.MarkOwed}, "mark failed": {Page: top, MarkFailed: true}, "abandoned": {Page: top, Mark: store.MarkAbandoned},
		"of a flight": {Page: top, FLID: 7}, "of a flight, far": {Page: far, FLID: 8}, "of no flight": {Page: top, FLID: 4711}, "of a flight, dead": {Page: top, FLID: 10, State: message.Dead},
	} {
		counted(t, tx, "messages "+name, func(q *counter) error { _, err := s.OpsMessages(t.Context(), q, f); return err })
	}
	for name, f := range map[string]store.EventFilter{
		"all": {Page: top}, "far": {Page: far}, "before a time": {Page: old}, "an hour": {Page: hour}, "dead": {Page: top, State: outbox.Dead},
		"dead of a target": {Page: old, State: outbox.Dead, Target: outbox.Msg}, "waiting": {Page: top, State: outbox.Pending},
		"sent of a target": {Page: far, State: outbox.Sent, Target: outbox.Schd}, "of a message": {Page: top, MsgID: 150_000}, "of a flight": {Page: top, FLID: 7},
	} {
		counted(t, tx, "events "+name, func(q *counter) error { _, err := s.OpsEvents(t.Context(), q, f); return err })
	}
	counted(t, tx, "an event", func(q *counter) error { _, _, err := s.OpsEvent(t.Context(), q, 150_000); return err })
	for name, f := range map[string]store.RequestFilter{
		"all": {Page: top}, "far": {Page: far}, "before a time": {Page: old}, "expired": {Page: top, State: request.Expired}, "open": {Page: top, State: request.Sent},
		"of a kind": {Page: top, Kind: "RQRD-KCXX"}, "of no kind": {Page: top, Kind: "RQRD-ZZZZ"},
	} {
		counted(t, tx, "requests "+name, func(q *counter) error { _, err := s.OpsRequests(t.Context(), q, f); return err })
	}
	for name, f := range map[string]store.AuditFilter{
		"all": {Page: top}, "before a time": {Page: old}, "actor": {Page: top, Actor: "olga"}, "action": {Page: top, Action: "replay"}, "nobody": {Page: top, Actor: "x"},
	} {
		counted(t, tx, "audit "+name, func(q *counter) error { _, err := s.AuditRows(t.Context(), q, f); return err })
	}
	m, _, _, err := s.OpsMessage(t.Context(), tx, 250_000, nil)
	require.NoError(t, err)
	counted(t, tx, "a story", func(q *counter) error { _, err := s.Story(t.Context(), q, m, "AODB|FLOP|S1|7"); return err })
}

// counted runs ask and counts the rows that its statements touched.
func counted(t *testing.T, tx pgx.Tx, name string, ask func(q *counter) error) {
	t.Helper()
	const most = 6000 // of 200,000; a scan of what is rare is 100 rows a table, a page 101
	q := &counter{Tx: tx}
	require.NoError(t, ask(q), name)
	require.NotEmpty(t, q.plans, name)
	require.LessOrEqual(t, q.touched, most, "%s:\n%s", name, strings.Join(q.plans, "\n"))
}

// counter runs each query under EXPLAIN ANALYZE before it runs it.
type counter struct {
	pgx.Tx
	touched int
	plans   []string
}

// planNode is what we read of a plan.
type planNode struct {
	Type    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Plans   []planNode
}

// count adds what the scans at and below n touched.
func (n planNode) count(q *counter, depth int) {
	if strings.Contains(n.Type, "Scan") {
		q.touched += int((n.Rows + n.Removed + n.Recheck) * n.Loops)
	}
	q.plans = append(q.plans, fmt.Sprintf("%s%s %s %s: %v rows and %v removed, %v times", strings.Repeat("  ", depth), n.Type, n.Table, n.Index, n.Rows, n.Removed+n.Recheck, n.Loops))
	for _, child := range n.Plans {
		child.count(q, depth+1)
	}
}

// Query counts, then answers.
func (q *counter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	var text string
	if err := q.Tx.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
		return nil, err
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		return nil, err
	}
	for _, p := range plans {
		p.Plan.count(q, 0)
	}
	return q.Tx.Query(ctx, sql, args...)
}

// QueryRow is Query for one row.
func (q *counter) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := q.Query(ctx, sql, args...)
	return oneRow{rows, err}
}

// Exec lets settings through; nothing else may go uncounted.
func (q *counter) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if !strings.HasPrefix(sql, "SET LOCAL ") {
		return pgconn.CommandTag{}, fmt.Errorf("not counted: %s", sql)
	}
	return q.Tx.Exec(ctx, sql, args...)
}
