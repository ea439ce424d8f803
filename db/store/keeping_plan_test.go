package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
)

// explainer explains also what gives no rows.
type explainer struct{ planner }

// Exec keeps the plan.
func (e *explainer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows, err := e.Tx.Query(ctx, "EXPLAIN "+sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	e.plans = append(e.plans, strings.Join(lines, "\n"))
	return e.Tx.Exec(ctx, sql, args...)
}

// TestUpkeepQueries_areServedByIndexes: what goes over big tables every night, and looks a swept flight up for a message,
// reads none of them from end to end; also when nothing is due, which is what most nights begin and end with.
func TestUpkeepQueries_areServedByIndexes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tx, err := dbtest.New(t).Begin(t.Context()) // of its own: ANALYZE keeps others from analysing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) })
	for _, statement := range []string{
		`INSERT INTO flight_schd (flid, operation_day, state_version, last_msg_id, flno, mvin, sodt, maid, created_at, updated_at)
		 SELECT n, '2026-11-30'::date - n / 500, 1, n, 'XX' || n, 'A', '2026-11-30'::timestamptz - n * interval '3 minutes', CASE WHEN n % 10 = 0 THEN n - 1 END, now(), now()
		 FROM generate_series(1, 100000) n`,
		`INSERT INTO flight_history (flid, operation_day, state_version, rule, doc, provenance, swept_at)
		 SELECT 200000 + n, '2026-11-30', 1, 'silent', '{}', '{}', now() - n * interval '1 minute' FROM generate_series(1, 100000) n`,
		`INSERT INTO flight_change (flid, msg_id, kind, state_version, dttm, before, fields, changed_at)
		 SELECT n % 20000, n, 'FLOP-STND', 1, now(), '{}', '{}', now() FROM generate_series(1, 100000) n`,
		`INSERT INTO proc_state (msg_id, state, received_at, created_at, updated_at, finished_at)
		 SELECT n, 'SUCCEEDED', now() - n * interval '1 second', now(), now(), now() FROM generate_series(1, 100000) n`,
		`INSERT INTO proc_state_hst (msg_id, state, received_at, created_at, updated_at, archived_at)
		 SELECT 100000 + n, 'SUCCEEDED', now() - n * interval '1 minute', now(), now(), now() FROM generate_series(1, 100000) n`,
		`INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, state, created_at)
		 SELECT CASE WHEN n % 2 = 0 THEN 'KAFKA:msg' ELSE 'KAFKA:schd' END, n, n % 20000, '1', 'TOMBSTONE', 1, '', 'SENT', now() FROM generate_series(1, 100000) n`,
		`INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, state, attempts, created_at, archived_at)
		 SELECT 200000 + n, 'KAFKA:schd', n, 0, n % 20000, '1', 'TOMBSTONE', 1, '', '', 'SENT', 0, now() - n * interval '1 minute', now() FROM generate_series(1, 100000) n`,
		`INSERT INTO ops_audit (at, actor, peer, action, reason, scope, dry_run, result)
		 SELECT now() - n * interval '1 minute', '', '', '', '', '{}', false, '{}' FROM generate_series(1, 100000) n`,
		`INSERT INTO req_track (kind, state, registered_at) SELECT 'RQRD-SLST', 'DONE', now() - n * interval '1 minute' FROM generate_series(1, 100000) n`,
		`INSERT INTO ref_batch (id, rtype, source, mode, records, changed, removed, applied_at)
		 SELECT n, 'SLST', 'AODB', 'COMPLETE', 1, 1, 0, now() - n * interval '1 minute' FROM generate_series(1, 100000) n`,
		`INSERT INTO schd_snap_log (msg_id, kind, records, created, updated, unchanged, recv_at)
		 SELECT n, 'SCHD-DNLD', 1, 1, 0, 0, now() - n * interval '1 minute' FROM generate_series(1, 100000) n`,
		`INSERT INTO msg_raw (msg_id, body, size_bytes, created_at) SELECT n, '', 1, now() - (100000 - n) * interval '1 minute' FROM generate_series(1, 100000) n`,
		`INSERT INTO msg_identity (identity_key, msg_id, dttm, content_hash, bound_at) SELECT n, n, now(), '', now() - (100000 - n) * interval '1 minute' FROM generate_series(1, 100000) n`,
		`ANALYZE msg_raw, msg_identity, flight_schd, flight_history, flight_change, proc_state, proc_state_hst, msg_event, msg_event_hst, ops_audit, req_track, ref_batch, schd_snap_log`,
	} {
		_, err := tx.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	flids := make([]int64, 250)
	for i := range flids {
		flids[i] = int64(i)*77 + 1
	}
	old, never := time.Now().Add(-60*24*time.Hour), time.Now().Add(-1000*24*time.Hour)
	dropping := func(drop func(context.Context, *explainer, time.Time) error) func(*explainer) error {
		return func(q *explainer) error {
			if err := drop(t.Context(), q, never); err != nil {
				return err
			}
			return drop(t.Context(), q, old)
		}
	}
	for name, ask := range map[string]func(q *explainer) error{
		"sweep: candidates": func(q *explainer) error {
			got, last, err := s.SweepCandidates(t.Context(), q, "2026-08-01", store.SweepPlace{}, 200)
			require.Len(t, got, 200)
			require.NoError(t, err)
			_, _, err = s.SweepCandidates(t.Context(), q, "2026-08-01", last, 200)
			return err
		},
		"sweep: messages wait": func(q *explainer) error { _, err := s.MessagesWait(t.Context(), q); return err },
		"ghosts for messages": func(q *explainer) error {
			got, err := s.LoadFlights(t.Context(), q, []int64{200_007, 200_009})
			require.Len(t, got, 2)
			return err
		},
		"a swept flight":    func(q *explainer) error { _, err := s.SweptLives(t.Context(), q, 200_007); return err },
		"sentinel: flights": func(q *explainer) error { _, err := s.FlightIDs(t.Context(), q, 50_000, 5000); return err },
		"sentinel: evidence": func(q *explainer) error {
			got, err := s.Evidence(t.Context(), q, flids)
			require.Len(t, got, len(flids))
			return err
		},
		"texts": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropTexts(ctx, q, before, 1000)
			return err
		}),
		"identities": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropIdentities(ctx, q, before, 1000)
			return err
		}),
		"archived messages": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropArchivedMessages(ctx, q, before, 1000)
			return err
		}),
		"archived events": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropArchivedEvents(ctx, q, before, 1000)
			return err
		}),
		"swept flights": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropSweptFlights(ctx, q, before, 1000)
			return err
		}),
		"snapshot log": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropSnapLog(ctx, q, before, 1000)
			return err
		}),
		"audit": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropAudit(ctx, q, before, 1000)
			return err
		}),
		"requests": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropRequests(ctx, q, before, 1000)
			return err
		}),
		"ref batches": dropping(func(ctx context.Context, q *explainer, before time.Time) error {
			_, err := s.DropRefBatches(ctx, q, before, 1000)
			return err
		}),
	} {
		nested, err := tx.Begin(t.Context())
		require.NoError(t, err)
		plan := store.WalkIndexes
		if name == "texts" || name == "identities" {
			plan = store.ScanRanges
		}
		require.NoError(t, plan(t.Context(), nested), name)
		q := &explainer{planner{Tx: nested}}
		require.NoError(t, ask(q), name)
		require.NotEmpty(t, q.plans, name)
		for _, text := range q.plans {
			for line := range strings.Lines(text) {
				for _, small := range []string{"ref_set", "ref_master", "retired_rows"} {
					line = strings.ReplaceAll(line, "Seq Scan on "+small, "")
				}
				if strings.Contains(line, "Seq Scan on flight_") && !strings.Contains(line, "flight_schd") && !strings.Contains(line, "flight_change") && !strings.Contains(line, "flight_history") {
					continue // lists, empty here
				}
				require.NotContains(t, line, "Seq Scan on", "%s:\n%s", name, text)
			}
		}
		require.NoError(t, nested.Rollback(t.Context()))
	}
}
