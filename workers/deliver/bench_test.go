package deliver_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/kafka"
)

// A backlog of 100,000 events, merely read and marked in batches, then drained to a broker in this process, then to one that
// takes 2 ms to acknowledge. The last two say how many times the first one's rate they reach; 0.5 and 0.4 are the goals.
//
//	go test -run '^$' -bench Backlog -benchtime 1x ./workers/deliver
func BenchmarkBacklog(b *testing.B) {
	var plain float64
	b.Run("read and mark", func(b *testing.B) { plain = rate(b, mark) })
	for _, c := range []struct {
		name  string
		delay time.Duration
	}{{"broker", 0}, {"broker that takes 2ms", 2 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			got := rate(b, func(b *testing.B, r *rig) {
				b.Helper()
				drainTo(b, r, broker(b, c.delay))
			})
			b.ReportMetric(got/plain, "of-read-and-mark")
		})
	}
}

const backlog = 100_000

// rate measures how many events a second work gets done.
func rate(b *testing.B, work func(b *testing.B, r *rig)) float64 {
	b.Helper()
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		r := setup(b, jobs.RoleMsg)
		r.deps.Log, r.deps.Now = slog.New(slog.DiscardHandler), time.Now
		flids := make([]int64, backlog)
		for i := range flids {
			flids[i] = int64(i % 500)
		}
		r.insert(b, outbox.Msg, flids...)
		_, err := r.pool.Exec(b.Context(), "VACUUM ANALYZE msg_event")
		require.NoError(b, err)
		b.StartTimer()
		start := time.Now()
		work(b, r)
		took += time.Since(start)
		b.StopTimer()
		var left int
		require.NoError(b, r.pool.QueryRow(b.Context(), "SELECT count(*) FROM msg_event WHERE state <> 'SENT'").Scan(&left))
		require.Zero(b, left)
		b.StartTimer()
	}
	perSecond := float64(backlog*b.N) / took.Seconds()
	b.ReportMetric(perSecond, "events/s")
	return perSecond
}

// mark reads and marks in batches of the role's size, as fast as that goes.
func mark(b *testing.B, r *rig) {
	b.Helper()
	for more := true; more; {
		require.NoError(b, db.InTx(b.Context(), r.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(b.Context(), "SET LOCAL synchronous_commit = off"); err != nil {
				return err
			}
			events, err := r.store.PendingEvents(b.Context(), tx, outbox.Msg, deliver.Defaults().Batch)
			if err != nil {
				return err
			}
			more = len(events) > 0
			sent := make([]store.Delivered, len(events))
			for i, e := range events {
				sent[i] = store.Delivered{ID: e.ID, FLID: e.FLID}
			}
			return r.store.MarkSent(b.Context(), tx, outbox.Msg, sent, time.Now())
		}))
	}
}

func drainTo(b *testing.B, r *rig, p *kafka.Producer) {
	b.Helper()
	r.deps.Kafka = p
	m := deliver.NewMsg(deliver.Defaults(), r.deps)
	for again := true; again; {
		next, err := m.Step(b.Context(), r.fence)
		require.NoError(b, err)
		again = next.Again
	}
}

// broker is one in this process whose acknowledgements take delay.
func broker(b *testing.B, delay time.Duration) *kafka.Producer {
	b.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, "msg"))
	require.NoError(b, err)
	b.Cleanup(c.Close)
	if delay > 0 {
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			c.SleepControl(func() { <-time.After(delay) })
			return nil, nil, false
		})
	}
	cfg := kafka.Defaults()
	cfg.Brokers = c.ListenAddrs()
	p, err := kafka.New(cfg, "msg", slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.Close(context.Background())) })
	return p
}
