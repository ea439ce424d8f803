package drain

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db/lease"
	"msgexchange/jobs"
)

// Watcher is every pod's eye on all roles: a role that has work and shows no life for Config.Takeover gets a new epoch and
// a wake-up for it. It is the takeover after a kill (O4) and the second net under lost, discarded or deleted wake-ups (O3,
// K02) at once, and the one who takes a role from a holder that lives but cannot reach what the role needs. It compares what it saw itself on its own clock, so that the clocks of pods and database need not agree.
type Watcher struct {
	Lane   string
	Roles  map[jobs.Role]Role
	Pool   *pgxpool.Pool
	Waker  *Waker
	Config Config
	Log    *slog.Logger
	// Now is the pod's clock; only differences are used.
	Now func() time.Time
	// Paused says that an operator has paused the role's queue in River UI: nobody would work a wake-up. nil: never.
	Paused func(ctx context.Context, tx pgx.Tx, role jobs.Role) (bool, error)

	// Pod is the name of this pod, which the holders of its runs begin with.
	Pod string
	// Places are this pod's in the roles that it works and that need a neighbour.
	Places map[jobs.Role]*Place

	seen   map[jobs.Role]sighting
	asks   sync.WaitGroup // looks at neighbours under way
	mu     sync.Mutex
	paused map[jobs.Role]bool // told already
}

type sighting struct {
	status lease.Status
	since  time.Time
}

// watchPeriod is the pause between looks: one query for all roles.
const watchPeriod = time.Second

// Run looks until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	t := time.NewTicker(watchPeriod)
	defer t.Stop()
	defer w.asks.Wait()
	trouble := troubleLog{log: w.Log, role: "watch"}
	for {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			trouble.seen(ctx, err)
		} else {
			trouble.over(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// Look is one look at all roles.
func (w *Watcher) Look(all context.Context) error {
	ctx, cancel := context.WithTimeout(all, 10*time.Second)
	defer cancel()
	rows, err := lease.Read(ctx, w.Pool, w.Lane, jobs.AllRoles())
	if err != nil {
		return err
	}
	var errs []error
	if missing := len(jobs.AllRoles()) - len(rows); missing > 0 {
		errs = append(errs, w.restore(ctx, missing))
	}
	for _, s := range rows {
		silent, err := w.silent(ctx, s)
		if silent {
			err = w.takeOver(ctx, s)
		}
		errs = append(errs, err, w.attend(all, s))
	}
	return errors.Join(errs...)
}

// restore makes rows anew that somebody deleted: without its row a role can neither be worked nor woken. Whoever worked under
// the old row is refused, because the new one names no holder.
func (w *Watcher) restore(ctx context.Context, missing int) error {
	if err := lease.Ensure(ctx, w.Pool, w.Lane, jobs.AllRoles()); err != nil {
		return err
	}
	w.Log.WarnContext(ctx, "leases were missing", "lane", w.Lane, "missing", missing)
	return nil
}

// silent says that the role's row has not moved for too long. A closed drain may be still for hours: its silence is counted from the
// last look that found no work, for what has just come has a wake-up under way. Were the epoch ended before that is taken, a pod
// that stays out would come in for it, and the log would tell of a takeover from nobody.
func (w *Watcher) silent(ctx context.Context, s lease.Status) (bool, error) {
	if w.seen == nil {
		w.seen = map[jobs.Role]sighting{}
	}
	now, before := w.Now(), w.seen[s.Role]
	if before.status != s {
		w.seen[s.Role] = sighting{s, now}
		return false, nil
	}
	if !s.Open() {
		if pending, err := w.Roles[s.Role].Pending(ctx, w.Pool); err != nil || !pending {
			w.seen[s.Role] = sighting{s, now}
			return false, err
		}
	}
	return now.Sub(before.since) >= w.Config.Takeover, nil
}

// isPaused says that the role's queue is paused, and tells it once: taking over would wake nobody, again and again.
func (w *Watcher) isPaused(ctx context.Context, tx pgx.Tx, role jobs.Role) (bool, error) {
	if w.Paused == nil {
		return false, nil
	}
	paused, err := w.Paused(ctx, tx, role)
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if paused && !w.paused[role] {
		w.Log.WarnContext(ctx, "queue paused", "role", role, "hint", "resume it in River UI; what waits is worked off then")
	}
	if w.paused == nil {
		w.paused = map[jobs.Role]bool{}
	}
	w.paused[role] = paused
	return paused, nil
}
