package poll

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/inbox"
)

// Metrics of the inbox, with the contract's names. What stands in our database is read when it is asked for, so that
// every pod tells the same; what cannot be read is left out, never 0.
type Metrics struct {
	agedOut, late, badDates, edited prometheus.Counter

	watermark, holes, stopped, lag, success *prometheus.Desc

	query db.Querier
	store *store.Store
	lane  string

	mu      sync.Mutex
	at      time.Time // of the last round of this pod
	waiting int64     // ids seen above the watermark by then
}

// scrapeTimeout bounds the query behind one scrape.
const scrapeTimeout = 700 * time.Millisecond

// fresh is how long what a round saw is still told: after that another pod polls, or none does.
const fresh = time.Minute

// NewMetrics makes and registers them.
func NewMetrics(reg prometheus.Registerer, q db.Querier, s *store.Store, lane string) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	m := &Metrics{
		agedOut:   counter("msgx_hole_aged_out_total", "Holes passed because they were older than max-commit-delay."),
		late:      counter("msgx_late_arrival_detected_total", "Rows that turned up in a hole after it was passed."),
		badDates:  counter("msgx_mailbox_bad_dates_total", "Rows whose received date is no date."),
		edited:    counter("msgx_mailbox_edited_total", "Rows whose text was changed after they were taken over."),
		watermark: desc("msgx_watermark", "Every mailbox id up to it is taken over or belongs to a passed hole."),
		holes:     desc("msgx_hole_open", "Ranges of missing ids that hold the watermark back."),
		stopped:   desc("msgx_inbox_stopped", "1 while the lane takes nothing over, for this reason.", "reason"),
		lag:       desc("msgx_watermark_lag", "Highest id seen in the mailbox less the watermark, by the pod that polls."),
		success:   desc("msgx_poll_last_success_timestamp", "When this pod last read the mailbox, in seconds since 1970."),
		query:     q, store: s, lane: lane,
	}
	reg.MustRegister(m.agedOut, m.late, m.badDates, m.edited, m)
	return m
}

// polled notes a round that was committed.
func (m *Metrics) polled(at time.Time, waiting int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.waiting = at, waiting
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.watermark, m.holes, m.stopped, m.lag, m.success} {
		ch <- d
	}
}

// Collect is prometheus.Collector's.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	m.mu.Lock()
	at, waiting := m.at, m.waiting
	m.mu.Unlock()
	if !at.IsZero() {
		gauge(m.success, float64(at.UnixMilli())/float64(time.Second/time.Millisecond))
		if time.Since(at) < fresh {
			gauge(m.lag, float64(waiting))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	in, ok, err := m.store.Inbox(ctx, m.query, m.lane)
	if err != nil || !ok {
		return
	}
	gauge(m.watermark, float64(in.Cursor.W))
	gauge(m.holes, float64(len(in.Cursor.Holes)))
	stopped := 0.0
	if in.Stopped == inbox.IDRegression {
		stopped = 1
	}
	gauge(m.stopped, stopped, string(inbox.IDRegression))
}
