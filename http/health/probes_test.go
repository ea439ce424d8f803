package health_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/health"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

func TestProbes(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	postgres, schema, lane := health.PostgresProbe(pool), health.SchemaProbe(pool), health.LaneProbe(pool, store.New(time.UTC), "default")
	exec := func(sql string) {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	state := func(p health.Probe) health.State { return p.Look(t.Context()).State }

	require.Equal(t, health.OK, state(postgres))
	require.Equal(t, health.OK, state(schema))
	require.Equal(t, health.OK, state(lane), "a lane that has not begun is not stopped")

	exec(`INSERT INTO inbox_cursor (lane, updated_at) VALUES ('default', now())`)
	require.Equal(t, health.OK, state(lane))
	exec(`UPDATE inbox_cursor SET stopped_reason = 'id-regression', stopped_at = now()`)
	require.Equal(t, health.Check{State: health.Down, Detail: "stopped: id-regression"}, lane.Look(t.Context()))
	exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	require.Equal(t, health.Down, state(schema))

	pool.Close()
	for _, p := range []health.Probe{postgres, schema, lane} {
		require.Equal(t, health.Down, state(p), p.Name)
	}
}
