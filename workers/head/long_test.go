package head_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/workers/head"
)

// slowBridges takes its time over the first stand.
type slowBridges func()

func (b slowBridges) Bridges(string) []string {
	b()
	return nil
}

// A message that takes longer to decide than the server waits for an idle transaction is decided once and stored. It used to be
// begun again for ever: losing the connection is an outage, and an outage spends no attempts.
func TestLongDecision(t *testing.T) {
	t.Parallel()
	var r *rig
	decided := 0
	once := sync.OnceFunc(func() {
		_, err := r.pool.Exec(t.Context(), "SELECT pg_sleep(4)") // on another connection
		require.NoError(t, err)
	})
	r = setup(t, func(c *head.Config) { c.Flight.Bridges = slowBridges(func() { decided++; once() }) })
	config := r.pool.Config()
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "3s"
	impatient, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(impatient.Close)
	r.pool, r.deps.Pool = impatient, impatient
	r.restart()

	r.put(schedule(1, 15, 1, `<PSDT PSNO="1"><PSST>203</PSST></PSDT>`))
	r.step()
	r.requireStates("1 SUCCEEDED 1x")
	require.Equal(t, 1, decided)
}
