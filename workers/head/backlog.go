package head

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
)

// Backlog are the gauges of the line, read from our database when they are asked for, so that every pod tells the same.
// What cannot be read is left out, never 0 (contract §6).
type Backlog struct {
	unfinished, oldest, epoch *prometheus.Desc

	lane  string
	q     db.Querier
	store *store.Store
	now   func() time.Time

	mu   sync.Mutex
	at   time.Time
	read []prometheus.Metric
}

// The numbers are read at most every keep, each time within readTimeout.
const (
	keep        = 10 * time.Second
	readTimeout = 700 * time.Millisecond
)

// NewBacklog makes the collector; the caller registers it.
func NewBacklog(lane string, q db.Querier, s *store.Store, now func() time.Time) *Backlog {
	return &Backlog{
		unfinished: prometheus.NewDesc("msgx_backlog_unfinished", "Messages taken over and not finished.", nil, nil),
		oldest:     prometheus.NewDesc("msgx_backlog_oldest_unprocessed_seconds", "Time since the oldest of them was taken over; 0 when there is none.", nil, nil),
		epoch:      prometheus.NewDesc("msgx_lease_epoch", "Fencing epoch of the head; a step means that a worker was taken over.", nil, nil),
		lane:       lane, q: q, store: s, now: now,
	}
}

// Describe is prometheus.Collector's.
func (b *Backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.unfinished
	ch <- b.oldest
	ch <- b.epoch
}

// Collect is prometheus.Collector's.
func (b *Backlog) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); now.Sub(b.at) >= keep {
		b.at, b.read = now, b.fresh(now)
	}
	for _, m := range b.read {
		ch <- m
	}
}

func (b *Backlog) fresh(now time.Time) (all []prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v))
	}
	if l, err := b.store.Backlog(ctx, b.q, now); err == nil {
		gauge(b.unfinished, float64(l.Unfinished))
		gauge(b.oldest, l.OldestSeconds)
	}
	if rows, err := lease.Read(ctx, b.q, b.lane, []jobs.Role{jobs.RoleHead}); err == nil && len(rows) == 1 {
		gauge(b.epoch, float64(rows[0].Epoch))
	}
	return all
}
