package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/migrations"
)

// Events that wait or are dead when migration 00019 comes are found afterwards, and by the version before when it is taken back.
func TestMigrations_eventSpans(t *testing.T) {
	t.Parallel()
	const before, spans = 18, 19
	pool := open(t, dbtest.DSN(t))
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer func() { require.NoError(t, sqlDB.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, sqlDB, migrations.Files)
	require.NoError(t, err)
	_, err = provider.DownTo(t.Context(), before)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
		SELECT CASE g % 2 WHEN 0 THEN 'KAFKA:msg' ELSE 'KAFKA:schd' END, g, g, 'k', 'UPSERT', 1, 'K', '{}',
		       CASE WHEN g % 700 < 2 THEN 'DEAD' WHEN g > 3500 THEN 'PENDING' ELSE 'SENT' END, now()
		FROM generate_series(1, 5000) g`)
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), spans)
	require.NoError(t, err)
	var waiting, dead, lost int
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT (SELECT sum(amount) FROM event_span WHERE state = 'PENDING'), (SELECT sum(amount) FROM event_span WHERE state = 'DEAD'),
		       (SELECT count(*) FROM msg_event e WHERE e.state <> 'SENT' AND NOT EXISTS (
		           SELECT FROM event_span s WHERE s.target = e.target AND s.state = e.state AND e.event_id BETWEEN s.first_id AND s.last_id))`).Scan(&waiting, &dead, &lost))
	require.Equal(t, []int{1495, 15, 0}, []int{waiting, dead, lost})
	_, err = provider.DownTo(t.Context(), before)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "UPDATE msg_event SET state = 'SENT' WHERE state = 'PENDING'")
	require.NoError(t, err, "nothing of it is left behind")
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM event_span WHERE state = 'PENDING'").Scan(&waiting))
	require.Zero(t, waiting)
}
