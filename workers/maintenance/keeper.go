// Package maintenance does the work that the clock asks for: archive, history sweep, snapshots of the log, the sentinel,
// and whatever else registers a Task (design §10). It never touches the order of messages; what writes events takes
// PIPELINE_LOCK like everybody else (O2).
//
// What is due is decided from periodic_run, not from any leader's memory (K03): a tick, inserted by River's leader twice a
// minute, takes every due time up to now with one job, under the row's lock. So a restart, a new leader or two weeks off
// give one run. Every pod that may lead knows both kinds; pods without the role maintenance leave the jobs to others.
package maintenance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/schedule"
)

// Task is one kind of periodic work.
type Task struct {
	// Name is the key in periodic_run, in the job's arguments and in the operator's order; never renamed.
	Name string
	// When is the cron line, by the clock of the airport; empty: only when an operator asks.
	When string
	// AtStart asks for a run whenever a pod that does such work starts, unless one succeeded within the last hour.
	AtStart bool
	// Do does one piece of the work, seconds long at most; it may run twice, on two pods at once, and end anywhere.
	Do func(ctx context.Context) (Piece, error)
	// Unable says why a run would do nothing as things are configured; empty: it would.
	Unable string
}

// Inserter is what the keeper needs of a River client.
type Inserter interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Deps of the keeper.
type Deps struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Jobs  Inserter
	Zone  *time.Location // of the cron lines: operation-day.zone
	Log   *slog.Logger
	Now   func() time.Time
	// Rest waits between two pieces of a run, as long as the first took or until ctx ends; nil: by the clock.
	Rest func(ctx context.Context, d time.Duration)
}

// Keeper knows what is due when, and does it. Safe for concurrent use.
type Keeper struct {
	deps  Deps
	tasks map[string]Task
	crons map[string]schedule.Cron
}

// New makes the keeper of the tasks. It fails on a cron line it cannot read and on a name that is taken twice.
func New(d Deps, tasks ...Task) (*Keeper, error) {
	if d.Rest == nil {
		d.Rest = rest
	}
	k := &Keeper{deps: d, tasks: map[string]Task{}, crons: map[string]schedule.Cron{}}
	for _, t := range tasks {
		if _, taken := k.tasks[t.Name]; taken {
			return nil, fmt.Errorf("maintenance: two tasks are called %q", t.Name)
		}
		k.tasks[t.Name] = t
		if t.When == "" {
			continue
		}
		cron, err := schedule.Parse(t.When)
		if err != nil {
			return nil, fmt.Errorf("maintenance: when %s is due: %w", t.Name, err)
		}
		k.crons[t.Name] = cron
	}
	return k, nil
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Names lists the tasks.
func (k *Keeper) Names() []string { return slices.Sorted(maps.Keys(k.tasks)) }

// Unable says why a run of the task would do nothing; empty: it would, or there is no such task.
func (k *Keeper) Unable(name string) (why string) { return k.tasks[name].Unable }

// Tick inserts one job for each task of which a due time has passed since it was last taken.
func (k *Keeper) Tick(ctx context.Context) error {
	now := k.deps.Now()
	return db.InTx(ctx, k.deps.Pool, func(tx pgx.Tx) error {
		taken, err := k.deps.Store.LockPeriodics(ctx, tx, slices.Sorted(maps.Keys(k.crons)), now)
		if err != nil {
			return err
		}
		for name, cron := range k.crons {
			if due := cron.Next(taken[name], k.deps.Zone); due.IsZero() || due.After(now) {
				continue
			}
			id, err := k.Order(ctx, tx, name)
			if err != nil {
				return err
			}
			if err := k.deps.Store.TakePeriodic(ctx, tx, name, id, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// Order asks for a run of a task now, as part of tx, and gives its job: the one that waits or runs already, if there is one.
func (k *Keeper) Order(ctx context.Context, tx pgx.Tx, name string) (jobID int64, err error) {
	if _, known := k.tasks[name]; !known {
		return 0, fmt.Errorf("maintenance: there is no task %q", name)
	}
	res, err := k.deps.Jobs.InsertTx(ctx, tx, jobs.Maintain{Task: name}, nil)
	if err != nil {
		return 0, fmt.Errorf("insert a run of %s: %w", name, err)
	}
	return res.Job.ID, nil
}

// startQuiet is how long a task that succeeded is not done again only because another pod starts: pods that come and go with
// the load must not spend their time on it.
const startQuiet = time.Hour

// Begin asks for what is to be done at the start of a pod.
func (k *Keeper) Begin(ctx context.Context) error {
	return db.InTx(ctx, k.deps.Pool, func(tx pgx.Tx) error {
		runs, err := k.deps.Store.Periodics(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range k.Names() {
			lately := slices.ContainsFunc(runs, func(r store.Periodic) bool {
				return r.Name == name && r.SucceededAt != nil && k.deps.Now().Sub(*r.SucceededAt) < startQuiet
			})
			if !k.tasks[name].AtStart || lately {
				continue
			}
			if _, err := k.Order(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
}
