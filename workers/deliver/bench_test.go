package deliver_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"msgexchange/jobs"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/kafka"
)

// The msg role from PostgreSQL to a broker in this process, per event.
func BenchmarkMsg(b *testing.B) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, "msg"))
	require.NoError(b, err)
	b.Cleanup(c.Close)
	cfg := kafka.Defaults()
	cfg.Brokers = c.ListenAddrs()
	p, err := kafka.New(cfg, "msg", slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.Close(context.Background())) })
	r := setup(b, jobs.RoleMsg)
	r.deps.Kafka, r.deps.Log = p, slog.New(slog.DiscardHandler)
	r.deps.Now = time.Now
	flids := make([]int64, b.N)
	for i := range flids {
		flids[i] = int64(i % 500)
	}
	r.insert(b, outbox.Msg, flids...)
	m := deliver.NewMsg(deliver.Defaults(), r.deps)
	b.ResetTimer()
	for again := true; again; {
		next, err := m.Step(b.Context(), r.fence)
		require.NoError(b, err)
		again = next.Again
	}
}
