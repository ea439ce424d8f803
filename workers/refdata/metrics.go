package refdata

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/store"
)

// Age is the gauge of how old each list of reference data is, read from our database when it is asked for, so that every pod
// tells the same. A list that cannot be read, or never came, is left out, never 0 (contract §6).
type Age struct {
	age   *prometheus.Desc
	query db.Querier
	store *store.Store
	now   func() time.Time
}

// scrapeTimeout bounds the query behind one scrape.
const scrapeTimeout = 700 * time.Millisecond

// NewAge makes the collector; the caller registers it.
func NewAge(q db.Querier, s *store.Store, now func() time.Time) *Age {
	return &Age{
		age:   prometheus.NewDesc("msgx_refdata_age_seconds", "Time since the list of reference data was last known to be whole.", []string{"rtype"}, nil),
		query: q, store: s, now: now,
	}
}

// Describe is prometheus.Collector's.
func (a *Age) Describe(ch chan<- *prometheus.Desc) { ch <- a.age }

// Collect is prometheus.Collector's.
func (a *Age) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	sets, err := a.store.ReferenceSets(ctx, a.query)
	if err != nil {
		return
	}
	for _, s := range sets {
		if s.RefreshedAt != nil {
			ch <- prometheus.MustNewConstMetric(a.age, prometheus.GaugeValue, a.now().Sub(*s.RefreshedAt).Seconds(), s.Rtype)
		}
	}
}
