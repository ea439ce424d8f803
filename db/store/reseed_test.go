package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/inbox"
)

// A reseed archives every column of a message, also those that migrations added after it was written.
func TestReseedInbox_archivesEveryColumn(t *testing.T) {
	t.Parallel()
	pool, s := dbtest.New(t), store.New(time.UTC)
	require.NoError(t, s.EnsureInbox(t.Context(), pool, "lane", at))
	_, err := pool.Exec(t.Context(), `INSERT INTO proc_state SELECT r.* FROM (SELECT 1) x, jsonb_populate_record(NULL::proc_state, (
		SELECT jsonb_object_agg(column_name, CASE
			WHEN column_name = 'state' THEN '"DEAD"'::jsonb
			WHEN column_name LIKE '%error_class' THEN '"INFRA"'
			WHEN column_name = 'identity_reuse' THEN '"content"'
			WHEN data_type LIKE 'timestamp%' THEN '"2026-11-30T00:00:00Z"'
			WHEN data_type = 'boolean' THEN 'true'
			WHEN data_type = 'bytea' THEN '"\\x01"'
			WHEN data_type = 'text' THEN '"text"'
			WHEN column_name = 'generation' THEN '0'
			ELSE '7' END)
		FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'proc_state')) r`)
	require.NoError(t, err)
	var before, after string
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT (to_jsonb(p))::text FROM proc_state p").Scan(&before))
	require.NotContains(t, before, "null")
	var closed store.Closed
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		closed, err = s.ReseedInbox(t.Context(), tx, "lane", inbox.Start{From: inbox.CutoverMin}, at)
		return err
	}))
	require.Equal(t, store.Closed{Generation: 1, Archived: 1}, closed, "a mark given up before stays given up as it was")
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT (to_jsonb(h) - 'archived_at')::text FROM proc_state_hst h").Scan(&after))
	require.Equal(t, before, after)
}
