// Package workers is one pod: River's client with a queue for each role the pod works, the drains behind them, and the
// watcher that takes over from pods that died (design §1, O4). Any number of pods may run; none is special.
package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/workers/drain"
	"msgexchange/workers/maintenance"
)

// Client is River's client over our pool.
type Client = river.Client[pgx.Tx]

// Deps of a pod.
type Deps struct {
	Name  string // unique to this process; shown as the holder of leases and in River UI
	Lane  string
	Pool  *pgxpool.Pool
	Waker *drain.Waker
	// Work has every role: also those this pod does not work, for its watcher watches them all.
	Work  map[jobs.Role]drain.Role
	Roles []jobs.Role // the roles this pod works; none: it only watches
	// Needs are the neighbours without which roles cannot work. Where one is named, a pod that alone cannot reach it leaves the
	// role to others (decision 0023).
	Needs map[jobs.Role]drain.Needs
	// Keeper knows the work that the clock asks for. Every pod that may lead has one; Maintain says that this pod does it too.
	Keeper   *maintenance.Keeper
	Maintain bool
	Drain    drain.Config
	Grace    time.Duration // from the stop signal to the hard end of running jobs
	Log      *slog.Logger
}

// Pod runs roles until it is told to stop.
type Pod struct {
	deps     Deps
	client   *Client
	places   map[jobs.Role]*drain.Place
	stopping chan struct{}
	leaving  sync.WaitGroup // queues being left
}

// River's own pace, set for this work: its defaults add up to 100 ms a hop and rescue after an hour (design O4, §4).
const (
	fetchCooldown  = 5 * time.Millisecond
	fetchPoll      = 500 * time.Millisecond
	rescueAfter    = 5 * time.Minute // the second net only: watchers take over after seconds
	keepCompleted  = time.Hour
	slotsPerRole   = 2 // one drain, and room for a wake-up of an epoch that is over to find that out
	startupTimeout = 15 * time.Second
)

// NewInserter makes a River client that only inserts: what wakers need before the pod that works exists.
func NewInserter(pool *pgxpool.Pool, log *slog.Logger) (*Client, error) {
	return river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: Quiet(log), FetchCooldown: fetchCooldown})
}

// New puts a pod together.
func New(d Deps) (*Pod, error) {
	p := &Pod{deps: d, places: map[jobs.Role]*drain.Place{}, stopping: make(chan struct{})}
	queues := map[string]river.QueueConfig{}
	for _, r := range d.Roles {
		queues[string(r)] = queueOfRole()
		if needs, ok := d.Needs[r]; ok {
			p.places[r] = drain.NewPlace(r, needs, p, d.Log)
		}
	}
	if d.Maintain {
		queues[jobs.QueueMaintenance] = river.QueueConfig{MaxWorkers: slotsPerRole}
	}
	config := &river.Config{
		ID:                          d.Name,
		Logger:                      Quiet(d.Log),
		Queues:                      queues,
		Workers:                     p.workers(),
		PeriodicJobs:                d.Keeper.Periodic(),
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPoll,
		FetchOnlyKnownKinds:         true,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: keepCompleted,
	}
	if len(queues) == 0 {
		config.Queues, config.Workers, config.PeriodicJobs = nil, nil, nil
	}
	client, err := river.NewClient(riverpgxv5.New(d.Pool), config)
	if err != nil {
		return nil, fmt.Errorf("make the River client: %w", err)
	}
	p.client = client
	return p, nil
}

// Client is the pod's River client, for River UI.
func (p *Pod) Client() *Client { return p.client }

// workers registers every kind: a leader that does not know a kind would discard its jobs (K03).
func (p *Pod) workers() *river.Workers {
	w := river.NewWorkers()
	river.AddWorker(w, drain.NewWorker[jobs.PollInbox](p.drain(jobs.RolePoll), p.deps.Name))
	river.AddWorker(w, drain.NewWorker[jobs.ProcessHead](p.drain(jobs.RoleHead), p.deps.Name))
	river.AddWorker(w, drain.NewWorker[jobs.DeliverMsg](p.drain(jobs.RoleMsg), p.deps.Name))
	river.AddWorker(w, drain.NewWorker[jobs.FlushSchd](p.drain(jobs.RoleSchd), p.deps.Name))
	river.AddWorker(w, drain.NewWorker[jobs.Backfill](p.drain(jobs.RoleBackfill), p.deps.Name))
	p.deps.Keeper.Register(w)
	river.AddWorker(w, drain.NewWorker[jobs.SendRequest](p.drain(jobs.RoleRequest), p.deps.Name))
	return w
}

// works says that River runs in this pod; one that only watches never leads.
func (p *Pod) works() bool { return len(p.deps.Roles) > 0 || p.deps.Maintain }

func (p *Pod) drain(r jobs.Role) *drain.Drain {
	return &drain.Drain{
		Role: r, Work: p.deps.Work[r], Pool: p.deps.Pool, Waker: p.deps.Waker, Config: p.deps.Drain, Log: p.deps.Log, Place: p.places[r],
		Stopping: p.stopping,
	}
}

// Run works until ctx ends, then hands its drains over and returns when they have, or when the grace is used up.
func (p *Pod) Run(ctx context.Context) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	if p.works() {
		if err := p.client.Start(working); err != nil {
			return fmt.Errorf("start River: %w", err)
		}
	}
	watcher := &drain.Watcher{
		Lane: p.deps.Lane, Roles: p.deps.Work, Pool: p.deps.Pool, Waker: p.deps.Waker, Config: p.deps.Drain, Log: p.deps.Log, Now: time.Now,
		Paused: p.paused, Pod: p.deps.Name, Places: p.places,
	}
	g, watching := errgroup.WithContext(ctx)
	g.Go(func() error { return watcher.Run(watching) })
	g.Go(func() error { <-watching.Done(); return p.end(watching) })
	return g.Wait()
}

// paused says that the role's queue is paused in River UI.
func (p *Pod) paused(ctx context.Context, tx pgx.Tx, role jobs.Role) (bool, error) {
	q, err := p.client.QueueGetTx(ctx, tx, string(role))
	if errors.Is(err, river.ErrNotFound) {
		return false, nil // no pod has ever worked it
	}
	if err != nil {
		return false, fmt.Errorf("look at queue %s: %w", role, db.Classify(err))
	}
	return q.PausedAt != nil, nil
}

// PausedQueues names the queues that an operator has paused in River UI: their work waits until he resumes them.
func PausedQueues(ctx context.Context, client *Client) ([]string, error) {
	all, err := client.QueueList(ctx, river.NewQueueListParams().First(maxQueues))
	if err != nil {
		return nil, fmt.Errorf("look at the queues: %w", db.Classify(err))
	}
	var names []string
	for _, q := range all.Queues {
		if q.PausedAt != nil {
			names = append(names, q.Name)
		}
	}
	return names, nil
}

// maxQueues is more than there are: one a role, and that of the maintenance.
const maxQueues = 100

// begin makes the leases and wakes every role once: whatever was left behind is looked at now.
func (p *Pod) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	if err := lease.Ensure(ctx, p.deps.Pool, p.deps.Lane, jobs.AllRoles()); err != nil {
		return err
	}
	if p.deps.Maintain {
		if err := p.deps.Keeper.Begin(ctx); err != nil {
			return err
		}
	}
	return db.InTx(ctx, p.deps.Pool, func(tx pgx.Tx) error { return p.deps.Waker.Wake(ctx, tx, jobs.AllRoles()...) })
}

// end tells the drains to hand over and waits for them.
func (p *Pod) end(ctx context.Context) error {
	close(p.stopping)
	if !p.works() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.deps.Grace)
	defer cancel()
	err := p.client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		p.deps.Log.WarnContext(ctx, "jobs did not end within the grace", "grace", p.deps.Grace.String())
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = p.client.StopAndCancel(hard)
	}
	if err != nil { // whoever takes over finds out from the tables; for this process it is the end all the same
		p.deps.Log.WarnContext(ctx, "river did not end in time", "error", fault.Text(err))
		return nil
	}
	p.leaving.Wait()
	return nil
}
