package drain

import (
	"context"
	"sync"
	"time"

	"msgexchange/db/lease"
)

// pulse is since when a run has got nothing out of the neighbour that its role needs, as far as its steps show. Its loop writes
// it and the goroutine that beats reads it.
type pulse struct {
	mu    sync.Mutex
	began time.Time // of the step under way; zero between steps
	bad   time.Time // of the first of the steps that failed in a row; zero: the last one did not
}

func (p *pulse) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = now
}

func (p *pulse) end(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !away:
		p.bad = time.Time{}
	case p.bad.IsZero():
		p.bad = p.began
	}
	p.began = time.Time{}
}

// since is when the steps began to get nothing; zero when they do. A step under way counts unless the neighbour is seldom asked.
func (p *pulse) since(seldom bool) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bad.IsZero() && !seldom {
		return p.began
	}
	return p.bad
}

// beat shows life until ctx ends, and, where the role needs a neighbour, looks whether the neighbour answers while steps get
// nothing out of it: only then, so that nobody is asked for nothing.
func (d *Drain) beat(ctx context.Context, f *lease.Fence, p *pulse) {
	t := time.NewTicker(d.Config.Beat)
	defer t.Stop()
	troubled := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		_ = f.Beat(ctx, troubled) // a beat that failed is a beat missed: the watchers judge
		if d.Place == nil {
			continue
		}
		if now := d.troubled(ctx, p, troubled); now != troubled && ctx.Err() == nil {
			troubled = now
			_ = f.Beat(ctx, troubled)
		}
	}
}

// troubled says that this pod has got nothing out of the neighbour for Config.Patience and the neighbour does not answer it.
// That lasts until it answers: steps that find nothing to do get on without it.
func (d *Drain) troubled(ctx context.Context, p *pulse, before bool) bool {
	since := p.since(d.Place.needs.Seldom)
	calm := since.IsZero() || time.Since(since) < d.Config.Patience/2
	if calm && !d.Place.waits() {
		return false
	}
	err := d.Place.reach(ctx)
	switch {
	case ctx.Err() != nil:
		return before
	case err == nil:
		d.Place.well(ctx)
		return false
	case calm || time.Since(since) < d.Config.Patience:
		return before
	}
	d.Place.offer(ctx, since, err)
	return true
}
