package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Every failed try stays on record, over replays too, and the record is bounded: a message cannot grow without end.
func TestFinish_keepsEachFailure(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	now := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	const id = 4711
	_, err := tx.Exec(t.Context(), `INSERT INTO proc_state (msg_id, created_at, updated_at) VALUES ($1, $2, $2)`, id, now)
	require.NoError(t, err)
	finish := func(f store.Finished) {
		t.Helper()
		f.ID = id
		require.NoError(t, s.Charge(t.Context(), tx, []int64{id}, now))
		n, err := s.Finish([]store.Finished{f}, now)(t.Context(), tx)
		require.NoError(t, err)
		require.Equal(t, int64(1), n)
	}
	record := func() (all []store.Failure) {
		t.Helper()
		var b []byte
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT coalesce(failures, '[]') FROM proc_state WHERE msg_id = $1`, id).Scan(&b))
		require.NoError(t, json.Unmarshal(b, &all))
		return all
	}
	finish(store.Finished{State: message.Pending, Reset: true})
	require.Empty(t, record(), "held back by another message: not tried")
	finish(store.Finished{State: message.Failed, Class: fault.Infra, Root: fault.Infra, Err: errors.New("refused")})
	require.Empty(t, cmp.Diff([]store.Failure{{At: now, Attempt: 1, State: message.Failed, Class: fault.Infra, Error: "refused"}}, record()))
	finish(store.Finished{State: message.Dead, Class: fault.Exhausted, Root: fault.Infra, Err: errors.New("refused")})
	require.Empty(t, cmp.Diff(store.Failure{At: now, Attempt: 2, State: message.Dead, Class: fault.Infra, Error: "refused"}, record()[1]))

	_, err = s.PutBack(t.Context(), tx, []int64{id}, nil, now)
	require.NoError(t, err)
	for range store.MaxFailures {
		finish(store.Finished{State: message.Failed, Class: fault.Infra, Root: fault.Infra, Err: errors.New("refused")})
	}
	all := record()
	require.Len(t, all, store.MaxFailures)
	require.Equal(t, int32(1), all[0].Replay, "the oldest go first")
	require.Equal(t, int32(store.MaxFailures), all[store.MaxFailures-1].Attempt)

	finish(store.Finished{State: message.Skipped, Skip: "duplicate-of:1", Err: errors.New("another body")})
	require.Len(t, record(), store.MaxFailures, "a note is no failure")
}
