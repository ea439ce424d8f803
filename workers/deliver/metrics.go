package deliver

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/outbox"
)

// Metrics are what delivery counts as it goes.
type Metrics struct {
	// EndToEnd is the time from a message's arrival to the acknowledgement of an event on msg.
	EndToEnd prometheus.Histogram
}

// NewMetrics makes and registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{EndToEnd: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "msgx_end_to_end_seconds",
		Help:    "Time from the arrival of a message to the acknowledgement of its event by Kafka.",
		Buckets: []float64{.005, .01, .02, .04, .06, .08, .1, .15, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	})}
	return m, reg.Register(m.EndToEnd)
}

// Backlog is the collector of what waits and what is dead, read from the database at most every few seconds however often
// it is scraped. What cannot be read is absent, never 0.
type Backlog struct {
	store *store.Store
	q     db.Querier
	now   func() time.Time

	pending, oldest, dead *prometheus.Desc

	mu   sync.Mutex
	read time.Time
	last map[outbox.Target]store.EventBacklog
}

const (
	backlogAge     = 5 * time.Second
	backlogTimeout = 700 * time.Millisecond
)

// NewBacklog makes the collector; the caller registers it.
func NewBacklog(s *store.Store, q db.Querier, now func() time.Time) *Backlog {
	target := []string{"target"}
	return &Backlog{
		store: s, q: q, now: now,
		pending: prometheus.NewDesc("msgx_events_pending", "Events that are not sent.", target, nil),
		oldest:  prometheus.NewDesc("msgx_events_oldest_seconds", "Age of the oldest event that is not sent; 0 when there is none.", target, nil),
		dead:    prometheus.NewDesc("msgx_events_dead", "Events Kafka refused for good.", target, nil),
	}
}

// Describe names the metrics.
func (b *Backlog) Describe(ch chan<- *prometheus.Desc) { ch <- b.pending; ch <- b.oldest; ch <- b.dead }

// Collect gives them.
func (b *Backlog) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Sub(b.read) >= backlogAge {
		b.refresh(now)
	}
	for t, l := range b.last {
		age := 0.0
		if !l.Oldest.IsZero() {
			age = max(0, now.Sub(l.Oldest).Seconds())
		}
		ch <- prometheus.MustNewConstMetric(b.pending, prometheus.GaugeValue, float64(l.Pending), string(t))
		ch <- prometheus.MustNewConstMetric(b.oldest, prometheus.GaugeValue, age, string(t))
		ch <- prometheus.MustNewConstMetric(b.dead, prometheus.GaugeValue, float64(l.Dead), string(t))
	}
}

func (b *Backlog) refresh(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	b.read, b.last = now, make(map[outbox.Target]store.EventBacklog)
	for _, t := range outbox.AllTargets() {
		if l, err := b.store.EventBacklog(ctx, b.q, t); err == nil {
			b.last[t] = l
		}
	}
}
