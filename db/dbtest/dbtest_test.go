package dbtest_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

func TestNew_givesEachTestItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	a, b := dbtest.New(t), dbtest.New(t)
	const insert = `INSERT INTO inbox_cursor (lane, updated_at) VALUES ('default', '2026-11-30 00:00Z')`
	for range 2 {
		_, err := a.Exec(t.Context(), insert)
		require.NoError(t, err)
		a = b
	}
	var jobs int
	require.NoError(t, b.QueryRow(t.Context(), `SELECT count(*) FROM river_job`).Scan(&jobs))
	require.Zero(t, jobs)
}

func TestTx_isRolledBack(t *testing.T) {
	t.Parallel()
	for range 2 {
		t.Run("insert", func(t *testing.T) {
			_, err := dbtest.Tx(t).Exec(t.Context(), `INSERT INTO inbox_cursor (lane, updated_at) VALUES ('default', '2026-11-30 00:00Z')`)
			require.NoError(t, err)
		})
	}
}

func TestMailbox_hasTheTwoTables(t *testing.T) {
	t.Parallel()
	first, second := dbtest.Mailbox(t), dbtest.Mailbox(t)
	require.NotEqual(t, first, second)
	box, err := sql.Open("mysql", first)
	require.NoError(t, err)
	defer func() { require.NoError(t, box.Close()) }()

	result, err := box.ExecContext(t.Context(), `INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES ('<MSG/>飞', NOW(), 'VALID')`)
	require.NoError(t, err)
	id, err := result.LastInsertId()
	require.NoError(t, err)
	require.Equal(t, int64(1), id)
	_, err = box.ExecContext(t.Context(), `INSERT INTO coutmsgs (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID) VALUES ('<MSG/>', NOW(), 'R')`)
	require.NoError(t, err)
}
