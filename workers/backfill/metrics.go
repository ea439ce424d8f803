package backfill

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
)

// Metrics are the gauges of marks, with the contract's names, read from our database when they are asked for, so that
// every pod tells the same. What cannot be read is left out, never 0.
type Metrics struct {
	owed, oldest, abandoned *prometheus.Desc

	query db.Querier
	store *store.Store

	mu    sync.Mutex
	at    time.Time
	stats store.DebtStats
}

// The counts are read at most every keep, each time within scrapeTimeout.
const (
	keep          = 10 * time.Second
	scrapeTimeout = 700 * time.Millisecond
)

// NewMetrics makes and registers them.
func NewMetrics(reg prometheus.Registerer, q db.Querier, s *store.Store) *Metrics {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	m := &Metrics{
		owed:      desc("msgx_backfill_unmarked_terminal", "Finished messages whose processed mark is owed and not given up."),
		oldest:    desc("msgx_backfill_oldest_unmarked_seconds", "Time since the oldest of them was finished; 0 when none is owed."),
		abandoned: desc("msgx_backfill_abandoned", "Messages whose mark was given up and waits for an operator."),
		query:     q, store: s,
	}
	reg.MustRegister(m)
	return m
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.owed
	ch <- m.oldest
	ch <- m.abandoned
}

// Collect is prometheus.Collector's.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.at) >= keep {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		stats, err := m.store.DebtStats(ctx, m.query, now)
		if err != nil {
			return
		}
		m.at, m.stats = now, stats
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(m.owed, float64(m.stats.Owed))
	gauge(m.oldest, m.stats.OldestAge.Seconds())
	gauge(m.abandoned, float64(m.stats.Abandoned))
}
