package request

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
)

// Metrics of requests, with the contract's names, read from our database when they are asked for, so that every
// pod tells the same; what cannot be read is left out, never 0.
type Metrics struct {
	open, expired *prometheus.Desc

	kinds []message.Kind
	query db.Querier
	store *store.Store
}

// scrapeTimeout bounds the query behind one scrape.
const scrapeTimeout = 700 * time.Millisecond

// NewMetrics makes and registers them; the kinds are those shown also while none of them is open.
func NewMetrics(reg prometheus.Registerer, q db.Querier, s *store.Store, kinds []message.Kind) *Metrics {
	m := &Metrics{
		expired: prometheus.NewDesc("msgx_requests_expired_total", "Requests that ended without their answer.", nil, nil),
		open:    prometheus.NewDesc("msgx_requests_open", "Requests whose answer may still come.", []string{"kind"}, nil),
		kinds:   kinds, query: q, store: s,
	}
	reg.MustRegister(m)
	return m
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.open
	ch <- m.expired
}

// Collect is prometheus.Collector's.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if n, err := m.store.ExpiredRequests(ctx, m.query); err == nil {
		ch <- prometheus.MustNewConstMetric(m.expired, prometheus.CounterValue, float64(n))
	}
	open, err := m.store.OpenRequestCounts(ctx, m.query)
	if err != nil {
		return
	}
	for _, k := range m.kinds {
		if _, ok := open[k]; !ok {
			open[k] = 0
		}
	}
	for kind, n := range open {
		ch <- prometheus.MustNewConstMetric(m.open, prometheus.GaugeValue, float64(n), string(kind))
	}
}
