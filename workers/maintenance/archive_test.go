package maintenance_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
	"msgexchange/workers/head"
	"msgexchange/workers/maintenance"
)

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), sql, args...)
	require.NoError(r.t, err)
}

func (r *rig) count(sql string) (n int64) {
	r.t.Helper()
	require.NoError(r.t, r.pool.QueryRow(r.t.Context(), sql).Scan(&n))
	return n
}

func (r *rig) archive() *maintenance.Archive {
	return maintenance.NewArchive(maintenance.ArchiveConfig{Retention: 24 * time.Hour, Texts: 7 * 24 * time.Hour, Identities: 400 * 24 * time.Hour},
		r.pool, r.store, func() time.Time { return r.clock })
}

// all runs a task's pieces to the end and adds them up.
func all(t *testing.T, do func(context.Context) (maintenance.Piece, error)) map[string]int64 {
	t.Helper()
	sum := map[string]int64{}
	for more := true; more; {
		p, err := do(t.Context())
		require.NoError(t, err)
		for k, n := range p.Counts {
			sum[k] += n
		}
		more = p.More
	}
	return sum
}

// Only what is over leaves: each row differs from the first in one thing.
func TestArchive_whatLeaves(t *testing.T) {
	t.Parallel()
	r := setup(t)
	old, young := r.clock.AddDate(0, 0, -2), r.clock.Add(-time.Hour)
	r.exec(`INSERT INTO proc_state (msg_id, state, received_at, created_at, updated_at, finished_at, backfill_next_at, backfill_at, backfill_abandoned_at, identity_key)
		SELECT id, state, received, $1, $1, CASE WHEN state IN ('PENDING', 'FAILED') THEN NULL ELSE $1::timestamptz END, next, at, abandoned, 'k' || id FROM (VALUES
		(1, 'SUCCEEDED', $1::timestamptz, NULL::timestamptz, $1::timestamptz, NULL::timestamptz), (2, 'SUCCEEDED', $1, NULL, NULL, NULL), (3, 'DEAD', $1, $1, NULL, $1),
		(4, 'SKIPPED', NULL, NULL, $1, NULL), (5, 'SUCCEEDED', $1, $1, NULL, NULL), (6, 'PENDING', $1, NULL, NULL, NULL), (7, 'SUCCEEDED', $2, NULL, $1, NULL),
		(8, 'SUCCEEDED', $1, NULL, $1, NULL), (9, 'SUCCEEDED', $1, NULL, $1, NULL)) v(id, state, received, next, at, abandoned)`, old, young)
	r.exec(`INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at) VALUES
		(1, 'KAFKA:msg', 1, 5, '5', 'UPSERT', 1, 'FLOP-STND', '{"a":1}', 'SENT', $1), (2, 'KAFKA:schd', 1, 5, '5', 'UPSERT', 1, 'FLOP-STND', '{}', 'DEAD', $1),
		(3, 'KAFKA:msg', 8, 5, '5', 'UPSERT', 1, 'FLOP-STND', '{}', 'PENDING', $1), (4, 'KAFKA:schd', 8, 5, '5', 'UPSERT', 1, 'FLOP-STND', '{}', 'SENT', $1),
		(5, 'KAFKA:schd', 77, 5, '5', 'TOMBSTONE', 1, 'SWEEP', NULL, 'SENT', $1)`, old)
	r.exec(`INSERT INTO msg_raw (msg_id, body, size_bytes, created_at) VALUES (1, '', 1, $1), (6, '', 1, $2), (9, '', 1, $2)`, old, r.clock.AddDate(0, 0, -8))
	r.exec(`INSERT INTO msg_identity (identity_key, msg_id, dttm, content_hash, bound_at) VALUES ('k1', 1, $1, '', $1), ('k0', 0, $1, '', $2)`, old, r.clock.AddDate(0, 0, -401))

	got := all(t, r.archive().Do)
	require.Empty(t, cmp.Diff(map[string]int64{"messages": 5, "events": 3, "texts": 1, "identities": 1}, got))
	live, err := r.pool.Query(t.Context(), `SELECT msg_id FROM proc_state ORDER BY msg_id`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(live, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6, 7, 8}, ids, "mark owed, unfinished, young, event to be sent")
	require.Equal(t, int64(2), r.count(`SELECT count(*) FROM msg_event WHERE msg_id = 8`))
	require.Equal(t, int64(1), r.count(`SELECT count(*) FROM msg_identity`), "identities outlive the archive")
	require.Equal(t, int64(2), r.count(`SELECT count(*) FROM msg_raw WHERE msg_id IN (1, 6)`), "texts have a retention of their own")
	require.Empty(t, all(t, r.archive().Do)["messages"], "a second run finds nothing")
}

// K10: 200,000 rows leave while messages come and go; the archive's connection is cut again and again. Nothing is lost or
// doubled, and an old identity still makes a repeated message a duplicate.
func TestK10_archiveUnderTrafficKilledAndRerun(t *testing.T) {
	t.Parallel()
	r := setup(t)
	h := r.head()
	first := h.put(shown)
	require.Equal(t, "SUCCEEDED", h.work(first))
	const rows = 200_000
	old := r.clock.AddDate(0, 0, -3)
	r.exec(`UPDATE proc_state SET received_at = $1, created_at = $1, backfill_at = $1, backfill_next_at = NULL`, old)
	r.exec(`UPDATE msg_event SET state = 'SENT', created_at = $1`, old)
	r.exec(`INSERT INTO proc_state (msg_id, state, received_at, created_at, updated_at, finished_at, backfill_at)
		SELECT id, 'SUCCEEDED', $1, $1, $1, $1, $1 FROM generate_series(1001, 1000 + $2::int) id`, old, rows)
	r.exec(`INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
		SELECT 'KAFKA:msg', id, id, id::text, 'UPSERT', 1, 'FLOP-STND', '{}', 'SENT', $1 FROM generate_series(1001, 1000 + $2::int) id WHERE id % 4 = 0`, old, rows)
	messages, events := r.count(`SELECT count(*) FROM proc_state`), r.count(`SELECT count(*) FROM msg_event`)

	ctx, stop := context.WithCancel(t.Context())
	traffic := make(chan int64)
	go func() { traffic <- r.traffic(ctx) }()
	kills := 0
	a := r.archive()
	for more := true; more; {
		if kills < 5 {
			kills += r.kill(a)
		}
		p, err := a.Do(t.Context())
		require.NoError(t, err)
		more = p.More
	}
	stop()
	came := <-traffic
	require.Positive(t, came)
	require.Positive(t, kills)
	require.Equal(t, messages+came, r.count(`SELECT (SELECT count(*) FROM proc_state) + (SELECT count(*) FROM proc_state_hst)`))
	require.Equal(t, events, r.count(`SELECT (SELECT count(*) FROM msg_event) + (SELECT count(*) FROM msg_event_hst)`))
	require.Zero(t, r.count(`SELECT count(*) FROM proc_state p JOIN proc_state_hst h USING (generation, msg_id)`))
	require.Equal(t, came, r.count(`SELECT count(*) FROM proc_state`), "all that is old has gone, all that is young is here")

	r.exec(`DELETE FROM proc_state`) // what came meanwhile is not the head's
	again := h.put(shown)
	require.Equal(t, "SKIPPED", h.work(again))
}

// traffic takes messages over and finishes them, as the poller and the head do, until ctx ends; it gives how many.
func (r *rig) traffic(ctx context.Context) (n int64) {
	for id := int64(1_000_000); ctx.Err() == nil; id++ {
		// Not with ctx: a statement that is cancelled may be committed after we have counted.
		_, err := r.pool.Exec(r.t.Context(), `INSERT INTO proc_state (msg_id, received_at, created_at, updated_at) VALUES ($1, $2, $2, $2)`, id, r.clock)
		if err != nil {
			r.t.Error(err)
			break
		}
		_, _ = r.pool.Exec(r.t.Context(), `UPDATE proc_state SET state = 'SUCCEEDED', finished_at = $2, backfill_next_at = $2 WHERE msg_id = $1`, id, r.clock)
	}
	return r.count(`SELECT count(*) FROM proc_state WHERE msg_id >= 1000000`)
}

// kill cuts the connection of a batch under way; it gives 1 when it hit one.
func (r *rig) kill(a *maintenance.Archive) (hit int) {
	done := make(chan error)
	go func() { _, err := a.Do(r.t.Context()); done <- err }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return 1
			}
			return 0
		default:
			_, _ = r.pool.Exec(r.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'active' AND query LIKE '%ArchiveMessages%' AND pid <> pg_backend_pid()`)
		}
	}
}

const shown = `<MSG><META><SNDR>AODB</SNDR><SEQN>7</SEQN><DTTM>20261130010000</DTTM><TYPE>FLOP</TYPE><STYP>STND</STYP></META><FLOP><FLID>999</FLID><STND>12</STND></FLOP></MSG>`

// headRig is a head on the same database.
type headRig struct {
	*rig
	head  *head.Head
	fence *lease.Fence
	last  int64
}

type asleep struct{}

func (asleep) Wake(context.Context, pgx.Tx, ...jobs.Role) error { return nil }
func (asleep) Ring(...jobs.Role)                                {}

func (asleep) Text(context.Context, int64) ([]byte, bool, error) { return nil, false, nil }

func (r *rig) head() *headRig {
	r.t.Helper()
	const lane = "default"
	require.NoError(r.t, lease.Ensure(r.t.Context(), r.pool, lane, jobs.AllRoles()))
	require.NoError(r.t, r.store.EnsureInbox(r.t.Context(), r.pool, lane, r.clock))
	fence, err := lease.Take(r.t.Context(), r.pool, jobs.RoleHead, jobs.Wake{Lane: lane, Epoch: 1}, "test")
	require.NoError(r.t, err)
	return &headRig{rig: r, fence: fence, head: head.New(head.Config{
		Lane: lane, Batch: 10, Marks: true, Retry: retry.Defaults(), Identity: message.IdentityDefaults(),
		Decode: sis.Options{Zone: r.zone}, Flight: flight.Options{Zone: r.zone},
	}, head.Deps{
		Pool: r.pool, Store: r.store, Mailbox: asleep{}, Waker: asleep{}, Metrics: head.NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.clock },
	})}
}

// put takes a message over.
func (h *headRig) put(text string) int64 {
	h.t.Helper()
	h.last++
	m := inbox.Message{Text: text, Size: len(text)}
	m.ID, m.ReceivedAt = h.last, h.clock
	row := h.store.Incoming(m)
	require.NoError(h.t, pgx.BeginFunc(h.t.Context(), h.pool, func(tx pgx.Tx) error {
		_, err := h.store.Enqueue(h.t.Context(), tx, 0, []store.Incoming{row}, false, h.clock)
		return err
	}))
	h.exec("UPDATE inbox_cursor SET committed_up_to = $1", h.last)
	return h.last
}

// work lets the head work and gives how the message ended.
func (h *headRig) work(id int64) (state string) {
	h.t.Helper()
	_, err := h.head.Step(h.t.Context(), h.fence)
	require.NoError(h.t, err)
	require.NoError(h.t, h.pool.QueryRow(h.t.Context(), fmt.Sprintf(`SELECT state || coalesce(': ' || last_error, '') FROM proc_state WHERE msg_id = %d`, id)).Scan(&state))
	return state
}
