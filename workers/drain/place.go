package drain

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"msgexchange/jobs"
	"msgexchange/jobs/fault"
)

// Needs is a server of others that a role cannot work without.
type Needs struct {
	// Name of it in the log.
	Name string
	// Reach says whether it answers this pod. It is called beside steps that are under way.
	Reach func(ctx context.Context) error
	// Seldom: most steps do without it, so that a long one says nothing about it.
	Seldom bool
}

// Fetcher takes wake-ups of a role for this pod, or leaves them to others.
type Fetcher interface {
	// StopFetching takes no more; the run under way goes on. It returns at once.
	StopFetching(role jobs.Role)
	// StartFetching takes them again. It fails while a run is under way.
	StartFetching(role jobs.Role) error
}

// Place is this pod's place in a role that needs a neighbour (decision 0023). A holder that cannot reach the neighbour offers the
// role: it goes on trying, says so in the lease, and takes no wake-ups, so that a pod which can reach the neighbour may have
// it. Who lost a role that way stays out until the neighbour answers, or until nobody else works the role. With the neighbour
// away for all nobody takes anything: whoever holds the role is there when it comes back. Safe for concurrent use.
type Place struct {
	role  jobs.Role
	needs Needs
	fetch Fetcher
	log   *slog.Logger

	mu      sync.Mutex
	running bool
	offered bool // by the run under way
	out     bool // lost to another pod while it was offered
	quiet   bool // we take no wake-ups
	told    bool // until the neighbour has answered
	asking  bool // a look at the neighbour for the watcher is under way
}

// NewPlace makes the place of a pod that takes the role's wake-ups.
func NewPlace(role jobs.Role, needs Needs, fetch Fetcher, log *slog.Logger) *Place {
	return &Place{role: role, needs: needs, fetch: fetch, log: log}
}

// begin notes that a run of this pod holds the role.
func (p *Place) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.offered = true, false
}

// end notes how the run ended: taken, when another pod has the role now.
func (p *Place) end(taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = p.offered && taken
	p.running, p.offered = false, false
}

// offer lets others have the role. The wake-up for whoever takes it must not come to us.
func (p *Place) offer(ctx context.Context, since time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered, p.quiet = true, true
	p.fetch.StopFetching(p.role)
	if !p.told {
		p.told = true
		p.log.WarnContext(ctx, "role offered", "role", p.role, "neighbour", p.needs.Name, "since", since, "error", fault.Text(err))
	}
}

// well notes that the neighbour answers this pod.
func (p *Place) well(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		p.log.InfoContext(ctx, "neighbour reached", "role", p.role, "neighbour", p.needs.Name)
	}
	p.offered, p.out, p.told = false, false, false
}

// waits says that the neighbour has not answered since the role was offered.
func (p *Place) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// comeBack ends our staying out: nobody else works the role.
func (p *Place) comeBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = false
}

// settle takes wake-ups again when there is no reason any more not to. The watcher calls it at each look.
func (p *Place) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet || p.running || p.out {
		return nil
	}
	err := p.fetch.StartFetching(p.role)
	p.quiet = err != nil
	return err
}

// ask begins a look at the neighbour where the watcher has a use for one: we may want to come in again, or a pod in trouble offers
// the role. One at a time, and none while a run of ours looks itself.
func (p *Place) ask(troubled bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking || p.running || (!p.out && !troubled) {
		return false
	}
	p.asking = true
	return true
}

// asked ends the look.
func (p *Place) asked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
}

// reach asks the neighbour, and does not wait long.
func (p *Place) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	return p.needs.Reach(ctx)
}

// reachTimeout is how long a neighbour has to answer a question that is asked to see whether it is there.
const reachTimeout = 2 * time.Second
