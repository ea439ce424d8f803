package db_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/jobs/fault"
)

// A transaction that computes for longer than the server waits for idle ones is still there afterwards, with what it wrote.
// The waiting is the server's, on another connection.
func TestAwake(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for name, c := range map[string]struct {
		think func(tx pgx.Tx, think func()) error
		class fault.Class
	}{
		"awake":  {func(tx pgx.Tx, think func()) error { return db.Awake(t.Context(), tx, think) }, ""},
		"asleep": {func(_ pgx.Tx, think func()) error { think(); return nil }, fault.Outage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '3s'")
				require.NoError(t, err)
				_, err = tx.Exec(t.Context(), insertLane, name)
				require.NoError(t, err)
				if err := c.think(tx, func() {
					_, err := pool.Exec(t.Context(), "SELECT pg_sleep(4)")
					require.NoError(t, err)
				}); err != nil {
					return err
				}
				_, err = tx.Exec(t.Context(), "SELECT 1")
				return err
			})
			require.Equal(t, c.class, fault.Of(err), "%v", err)
			require.Equal(t, err == nil, slices.Contains(lanes(t, pool), name))
		})
	}
}

// A panic of what it runs passes through, and the transaction is its owner's again.
func TestAwake_panic(t *testing.T) {
	t.Parallel()
	require.NoError(t, db.InTx(t.Context(), dbtest.New(t), func(tx pgx.Tx) error {
		require.PanicsWithValue(t, "oops", func() { _ = db.Awake(t.Context(), tx, func() { panic("oops") }) })
		_, err := tx.Exec(t.Context(), "SELECT 1")
		return err
	}))
}
