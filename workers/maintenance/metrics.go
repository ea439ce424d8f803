package maintenance

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/sentinel"
)

// Metrics are the gauges of the work that the clock asks for, read from our database when they are asked for, so that every
// pod tells the same. What cannot be read is left out, never 0.
type Metrics struct {
	differences, succeeded, failing *prometheus.Desc

	query db.Querier
	store *store.Store
	now   func() time.Time

	mu   sync.Mutex
	at   time.Time
	read []prometheus.Metric
}

// The numbers are read at most every keepMetrics, each time within scrapeTimeout.
const (
	keepMetrics   = 10 * time.Second
	scrapeTimeout = 700 * time.Millisecond
)

// NewMetrics makes and registers them.
func NewMetrics(reg prometheus.Registerer, q db.Querier, s *store.Store, now func() time.Time) *Metrics {
	m := &Metrics{
		differences: prometheus.NewDesc("msgx_consistency_differences", "Open differences between a flight and what should agree with it, by what that is.", []string{"about"}, nil),
		succeeded:   prometheus.NewDesc("msgx_maintenance_last_success_timestamp", "When a task last came to its end without an error; absent until it did.", []string{"task"}, nil),
		failing:     prometheus.NewDesc("msgx_maintenance_failing", "1 when the last run of a task ended with an error.", []string{"task"}, nil),
		query:       q, store: s, now: now,
	}
	reg.MustRegister(m)
	return m
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.differences
	ch <- m.succeeded
	ch <- m.failing
}

// Collect is prometheus.Collector's.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); now.Sub(m.at) >= keepMetrics {
		m.at, m.read = now, m.fresh()
	}
	for _, metric := range m.read {
		ch <- metric
	}
}

func (m *Metrics) fresh() (all []prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, label string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label))
	}
	if counts, err := m.store.DifferenceCounts(ctx, m.query); err == nil {
		for _, about := range sentinel.AllAbouts() {
			gauge(m.differences, float64(counts[about]), string(about))
		}
	}
	tasks, err := m.store.Periodics(ctx, m.query)
	if err != nil {
		return all
	}
	for _, t := range tasks {
		failing := 0.0
		if t.Error != nil {
			failing = 1
		}
		gauge(m.failing, failing, t.Name)
		if t.SucceededAt != nil {
			gauge(m.succeeded, float64(t.SucceededAt.Unix()), t.Name)
		}
	}
	return all
}
