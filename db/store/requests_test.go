package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

// Whoever changes several requests locks them in the order of their ids, as the head does that applies answers: no two of them
// wait for each other.
func TestRequestsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	s := store.New(time.UTC)
	for name, change := range map[string]func(context.Context, pgx.Tx) error{
		"taken": func(ctx context.Context, tx pgx.Tx) error {
			return s.TakenRequests(ctx, tx, map[int64]time.Time{1: at, 2: at})
		},
		"expired": func(ctx context.Context, tx pgx.Tx) error {
			return s.ExpireRequests(ctx, tx, []int64{2, 1}, request.TimedOut, at, request.Sent)
		},
		"looked at by the head": func(ctx context.Context, tx pgx.Tx) error {
			_, err := s.NewestRequests(ctx, tx, []message.Kind{"RQRD-ABDG", "RQRD-SLST"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, pool := t.Context(), dbtest.New(t)
			for i, kind := range []string{"RQRD-SLST", "RQRD-ABDG"} {
				_, err := pool.Exec(ctx, "INSERT INTO req_track (id, kind, state, registered_at, sent_at) OVERRIDING SYSTEM VALUE VALUES ($1, $2, 'SENT', now(), now())", i+1, kind)
				require.NoError(t, err)
			}
			_, err := pool.Exec(ctx, "UPDATE req_track SET reason = 'it lies behind the other now' WHERE id = 1")
			require.NoError(t, err)
			holder, err := pool.Begin(ctx)
			require.NoError(t, err)
			defer holder.Rollback(ctx) //nolint:errcheck // it is committed below
			_, err = holder.Exec(ctx, "SELECT id FROM req_track WHERE id = 1 FOR UPDATE")
			require.NoError(t, err)

			changed := make(chan error, 1)
			go func() { changed <- db.InTx(ctx, pool, func(tx pgx.Tx) error { return change(ctx, tx) }) }()
			require.Eventually(t, func() bool {
				var waits int
				err := pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits)
				return err == nil && waits == 1
			}, 20*time.Second, 5*time.Millisecond)
			_, err = holder.Exec(ctx, "SELECT id FROM req_track WHERE id = 2 FOR UPDATE NOWAIT")
			require.NoError(t, err, "who waits for the first one holds nothing")
			require.NoError(t, holder.Commit(ctx))
			require.NoError(t, <-changed, fmt.Sprint(name))
		})
	}
}
