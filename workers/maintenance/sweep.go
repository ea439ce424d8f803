package maintenance

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sweep"
)

// Waker wakes the role that sends tombstones.
type Waker interface {
	Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error
	Ring(roles ...jobs.Role)
}

// SweepConfig of the history sweep.
type SweepConfig struct {
	Enabled bool // off: nothing leaves, whoever asks (design §10)
	Policy  sweep.Policy
	Batch   int // flights looked at and moved together; 0 means 50
}

// Sweep moves flights that are over out of the live set into the history. A batch is one transaction under PIPELINE_LOCK:
// the head commits nothing meanwhile, and a batch is only begun when no message waits, so that none that was taken over
// before finds its flight gone (O2). Whole or not at all; it may be killed anywhere and run twice.
type Sweep struct {
	config SweepConfig
	base
	waker Waker
	log   *slog.Logger

	mu   sync.Mutex
	from store.SweepPlace // where this pass has come
}

// sweepBatch keeps the head waiting for some 50 ms (measured: 1.3 ms a flight with 40 changes, on a busy machine of two cores).
const sweepBatch = 50

// headWait is how long the sweep lets messages go first.
const headWait = time.Second

// NewSweep makes it.
func NewSweep(c SweepConfig, pool *pgxpool.Pool, s *store.Store, w Waker, log *slog.Logger, now func() time.Time) *Sweep {
	if c.Batch == 0 {
		c.Batch = sweepBatch
	}
	return &Sweep{config: c, base: base{pool, s, now}, waker: w, log: log}
}

// Do looks at the next flights of this pass and sweeps those that may go.
func (w *Sweep) Do(ctx context.Context) (Piece, error) {
	p := Piece{Report: Report{Counts: map[string]int64{}}}
	if !w.config.Enabled {
		p.Findings = []string{"nothing was swept: history.enabled is false"}
		return p, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	flids, last, err := w.store.SweepCandidates(ctx, w.pool, w.config.Policy.Before(now), w.from, w.config.Batch)
	if err == nil {
		err = w.batch(ctx, flids, now, &p)
	}
	switch {
	case err != nil:
		w.from = store.SweepPlace{}
		return p, err
	case p.Wait > 0: // the same flights again
	case len(flids) < w.config.Batch:
		w.from = store.SweepPlace{}
	default:
		w.from, p.More = last, true
	}
	return p, nil
}

// batch sweeps those of the flights that may go: together, or each by itself when they cannot go together, so that one bad
// record keeps no other.
func (w *Sweep) batch(ctx context.Context, flids []int64, now time.Time, p *Piece) error {
	chosen, err := w.choose(ctx, w.pool, flids, now) // without the lock: most that were looked at yesterday stay today too
	if err != nil || len(chosen) == 0 {
		return err
	}
	flids = flids[:0]
	for _, g := range chosen {
		flids = append(flids, g.Flight.FLID)
	}
	err = w.retire(ctx, flids, now, p)
	if err == nil || fault.Of(err) == fault.Outage || ctx.Err() != nil {
		return err
	}
	for _, flid := range flids {
		err := w.retire(ctx, []int64{flid}, now, p)
		switch {
		case err == nil:
		case fault.Of(err) == fault.Outage || ctx.Err() != nil:
			return err
		default:
			p.Counts["refused"]++
			p.Findings = append(p.Findings, fmt.Sprintf("flight %d stays: %s", flid, fault.Text(err)))
			w.log.WarnContext(ctx, "flight not swept", "flid", flid, "error", fault.Text(err))
		}
		if p.Wait > 0 {
			return nil
		}
	}
	return nil
}

// choose says which of the flights may go, as q sees them.
func (w *Sweep) choose(ctx context.Context, q db.Querier, flids []int64, now time.Time) ([]sweep.Go, error) {
	flights, err := w.store.LoadFlights(ctx, q, flids)
	if err != nil {
		return nil, err
	}
	set := flight.NewSet(flights...)
	var partners []int64
	for _, f := range flights {
		if partner := sweep.Partner(f); partner != 0 && set.Flight(partner) == nil {
			partners = append(partners, partner)
		}
	}
	if flights, err = w.store.LoadFlights(ctx, q, partners); err != nil {
		return nil, err
	}
	for _, f := range flights {
		set.Put(f)
	}
	return sweep.Choose(w.config.Policy, flids, set, now), nil
}

// retire moves flights that may still go once nobody else can change them.
func (w *Sweep) retire(ctx context.Context, flids []int64, now time.Time, p *Piece) error {
	var tombstones, gone int64
	var wait bool
	counts := map[string]int64{}
	err := db.InTx(ctx, w.pool, func(tx pgx.Tx) (err error) {
		if err := lease.Block(ctx, tx, jobs.RoleHead); err != nil {
			return err
		}
		if wait, err = w.store.MessagesWait(ctx, tx); err != nil || wait {
			return err
		}
		chosen, err := w.choose(ctx, tx, flids, now)
		if err != nil || len(chosen) == 0 {
			return err
		}
		leaving, events := leave(chosen)
		if err := w.store.Retire(ctx, tx, leaving, now); err != nil {
			return err
		}
		for _, g := range chosen {
			counts["by "+string(g.Rule)]++
		}
		gone, tombstones = int64(len(leaving)), int64(len(events))
		if len(events) == 0 {
			return nil
		}
		if err := w.store.InsertEvents(ctx, tx, events, now); err != nil {
			return err
		}
		return w.waker.Wake(ctx, tx, jobs.RoleSchd)
	})
	if err != nil {
		return err
	}
	if wait {
		p.Wait = headWait
		p.Counts["waits"]++
		return nil
	}
	for name, n := range counts {
		p.Counts[name] += n
	}
	p.Counts["flights"] += gone
	p.Counts["tombstones"] += tombstones
	if tombstones > 0 {
		w.waker.Ring(jobs.RoleSchd)
	}
	return nil
}

// leave is what is written of flights that go, and what is told of it.
func leave(chosen []sweep.Go) (leaving []store.Retiree, events []outbox.Event) {
	for _, g := range chosen {
		r := store.Retiree{Flight: g.Flight, Rule: string(g.Rule), Version: g.Flight.Version}
		if e, told := outbox.Swept(g.Flight); told {
			events = append(events, e)
			r.Version = e.StateVersion
		}
		leaving = append(leaving, r)
	}
	return leaving, events
}
