package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// A statement of the hot loops reads about as many rows as it changes, however many wait behind them, and also while
// PostgreSQL's statistics are those of before: that nothing waits, when a backlog has just come in, and that everything
// waits, when one has just been worked off.
func TestHotStatementsTouchOnlyTheirRows(t *testing.T) {
	t.Parallel()
	const waiting, batch = 20_000, 500
	ids := make([]int64, batch)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	sent := make([]store.Delivered, batch)
	done := make([]store.Finished, batch)
	settled := make([]backfill.Settlement, batch)
	for i, id := range ids {
		sent[i].ID = id
		done[i] = store.Finished{ID: id, State: message.Succeeded}
		settled[i].Debt.Pos.ID = id
	}
	for name, c := range map[string]struct {
		table string
		fill  [2]string
		do    func(ctx context.Context, s *store.Store, tx pgx.Tx) (rows int64, err error)
	}{
		"finish messages": {"proc_state", fillMessages(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			return s.Finish(done, at)(ctx, tx)
		}},
		"settle marks": {"proc_state", fillMessages(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			_, err := s.SettleDebts(ctx, tx, settled, at) // unfinished messages owe nothing
			return batch, err
		}},
		"charge messages": {"proc_state", fillMessages(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			return batch, s.Charge(ctx, tx, ids, at)
		}},
		"events sent": {"msg_event", fillEvents(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			return batch, s.MarkSent(ctx, tx, outbox.Msg, sent, at)
		}},
		"events superseded": {"msg_event", fillEvents(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			return batch, s.MarkSent(ctx, tx, outbox.Msg, []store.Delivered{{ID: waiting, Older: ids}}, at)
		}},
		"next events": {"msg_event", fillEvents(), func(ctx context.Context, s *store.Store, tx pgx.Tx) (int64, error) {
			if _, err := s.EventsWait(ctx, tx, outbox.Msg, waiting-batch); err != nil {
				return 0, err
			}
			events, err := s.PendingEvents(ctx, tx, outbox.Msg, waiting-batch, batch)
			return int64(len(events)), err
		}},
	} {
		for _, believed := range []string{"nothing waits", "everything waits"} {
			t.Run(name+", "+believed, func(t *testing.T) {
				t.Parallel()
				tx, s := alone(t), store.New(time.UTC)
				exec := func(sql string) {
					_, err := tx.Exec(t.Context(), sql)
					require.NoError(t, err)
				}
				exec("SET LOCAL plan_cache_mode = force_generic_plan") // as every fenced transaction does
				exec(c.fill[0])
				exec("ANALYZE " + c.table)
				exec(c.fill[1])
				if believed == "everything waits" {
					exec("ANALYZE " + c.table)
				}
				before := touched(t, tx, c.table)
				n, err := c.do(t.Context(), s, tx)
				require.NoError(t, err)
				require.EqualValues(t, batch, n)
				require.LessOrEqual(t, touched(t, tx, c.table)-before, int64(4*batch))
			})
		}
	}
}

// A fill has 20,000 rows that are done, then lets them all wait.
func fillMessages() [2]string {
	return [2]string{
		`INSERT INTO proc_state (msg_id, state, created_at, updated_at, finished_at)
		 SELECT g, 'SUCCEEDED', now(), now(), now() FROM generate_series(1, 20000) g`,
		"UPDATE proc_state SET state = 'PENDING', finished_at = NULL",
	}
}

func fillEvents() [2]string {
	return [2]string{
		`INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
		 SELECT g, 'KAFKA:msg', g, g, 'k', 'UPSERT', 1, 'K', '{}', 'SENT', now() FROM generate_series(1, 20000) g`,
		"UPDATE msg_event SET state = 'PENDING'",
	}
}

// alone is a transaction on a database of its own, for tests that give ids themselves or have PostgreSQL analyse its tables: beside
// each other they would wait.
func alone(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := dbtest.New(t).Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) })
	return tx
}

// touched counts the rows of a table that this transaction has read so far.
func touched(t *testing.T, tx pgx.Tx, table string) (n int64) {
	t.Helper()
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1", table).Scan(&n))
	return n
}
