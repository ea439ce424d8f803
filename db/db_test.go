package db_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/jobs/fault"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

const insertLane = `INSERT INTO pipeline_lease (lane, role, heartbeat_at) VALUES ($1, 'head', '2026-11-30 00:00Z')`

func lanes(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT lane FROM pipeline_lease ORDER BY lane`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func TestInTx_commitsOnlyWhenTheFunctionSucceeds(t *testing.T) {
	t.Parallel()
	pool, refused := dbtest.New(t), errors.New("refused")
	insert := func(ctx context.Context, lane string, end func() error) error {
		return db.InTx(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insertLane, lane)
			require.NoError(t, err)
			return end()
		})
	}
	require.NoError(t, insert(t.Context(), "kept", func() error { return nil }))
	require.ErrorIs(t, insert(t.Context(), "error", func() error { return refused }), refused)
	require.Panics(t, func() { _ = insert(t.Context(), "panic", func() error { panic("boom") }) })

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, insert(ctx, "cancelled", func() error { cancel(); return nil }), context.Canceled)

	require.Equal(t, []string{"kept"}, lanes(t, pool))
	require.Zero(t, pool.Stat().AcquiredConns(), "every connection is given back")
}

func TestInTx_classifiesWhatComesFromPostgreSQL(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	err := db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO inbox_cursor (lane, committed_up_to, updated_at) VALUES ('x', -1, now())`)
		return err
	})
	var fe *fault.Error
	require.ErrorAs(t, err, &fe)
	require.Equal(t, fault.Infra, fe.Class)
}

func TestInSnapshot_seesOneMomentAndWritesNothing(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	err := db.InSnapshot(t.Context(), pool, func(tx pgx.Tx) error {
		var before, after int
		const count = `SELECT count(*) FROM inbox_cursor`
		require.NoError(t, tx.QueryRow(t.Context(), count).Scan(&before))
		_, err := pool.Exec(t.Context(), insertLane, "meanwhile")
		require.NoError(t, err)
		require.NoError(t, tx.QueryRow(t.Context(), count).Scan(&after))
		require.Equal(t, before, after)
		_, err = tx.Exec(t.Context(), insertLane, "written")
		return err
	})
	require.Error(t, err)
	require.Equal(t, []string{"meanwhile"}, lanes(t, pool))
}
