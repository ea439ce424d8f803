package lease_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/jobs"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

// The chain of a holder's transactions breaks when another wrote under the lock, and when a server came back without the last
// one; not by a roll-back, nor by what happens under other roles' locks.
func TestChain(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	require.NoError(t, lease.Ensure(t.Context(), pool, "default", jobs.AllRoles()))
	f, err := lease.Take(t.Context(), pool, jobs.RoleHead, jobs.Wake{Lane: "default", Epoch: 1}, "one")
	require.NoError(t, err)
	turn := func() (chain int64) {
		require.NoError(t, f.Tx(t.Context(), func(pgx.Tx) error { chain = f.Chain(); return nil }))
		return chain
	}
	visit := func(role jobs.Role) func() {
		return func() {
			require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return lease.Block(t.Context(), tx, role) }))
		}
	}
	exec := func(sql string) func() {
		return func() { _, err := pool.Exec(t.Context(), sql); require.NoError(t, err) }
	}
	hold := func() {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return f.Hold(t.Context(), tx) }))
	}
	chain := turn()
	for _, c := range []struct {
		name   string
		what   func()
		breaks bool
	}{
		{"nothing", func() {}, false},
		{"a roll-back", func() {
			sorry := errors.New("sorry")
			require.ErrorIs(t, f.Tx(t.Context(), func(pgx.Tx) error { return sorry }), sorry)
		}, false},
		{"a beat", func() { require.NoError(t, f.Beat(t.Context(), false)) }, false},
		{"a visit to another role", visit(jobs.RoleSchd), false},
		{"a visit", visit(jobs.RoleHead), true},
		{"a lost commit", exec("UPDATE pipeline_lease SET turn = turn - 1 WHERE role = 'head'"), true},
		{"a visit after a lost commit", func() {
			exec("UPDATE pipeline_lease SET turn = turn - 1 WHERE role = 'head'")()
			visit(jobs.RoleHead)()
		}, true},
		{"a drain that was about to close", hold, true},
		{"a drain that was about to close after a lost commit", func() {
			exec("UPDATE pipeline_lease SET turn = turn - 1 WHERE role = 'head'")()
			hold()
		}, true},
		{"flights that went", exec("DELETE FROM flight_schd"), true},
		{"a row made anew", func() {
			exec("DELETE FROM pipeline_lease WHERE role = 'head'")()
			exec("INSERT INTO pipeline_lease (lane, role, holder, heartbeat_at) VALUES ('default', 'head', 'one', now())")()
		}, true},
		{"a commit nobody heard of", func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_ = f.Tx(ctx, func(tx pgx.Tx) error {
				require.NoError(t, tx.Commit(t.Context())) // the caller's commit fails: the transaction is over
				return nil
			})
		}, true},
	} {
		c.what()
		now := turn()
		require.Equal(t, c.breaks, now != chain, c.name)
		chain = now
		require.Equal(t, chain, turn(), "%s: unbroken again", c.name)
	}
	other, err := lease.Take(t.Context(), pool, jobs.RoleHead, jobs.Wake{Lane: "default", Epoch: 1}, "two")
	require.NoError(t, err)
	require.ErrorIs(t, f.Tx(t.Context(), func(pgx.Tx) error { return nil }), lease.ErrFenced)
	require.NoError(t, other.Tx(t.Context(), func(pgx.Tx) error { return nil }))
	require.NotZero(t, other.Chain(), "a new hold begins a chain of its own")
}
