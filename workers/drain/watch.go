package drain

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/jobs"
)

// Watcher is every pod's eye on all roles: a role that has work and shows no life for Config.Takeover gets a new epoch and
// a wake-up for it. It is the takeover after a kill (O4) and the second net under lost, discarded or deleted wake-ups (O3,
// K02) at once. It compares what it saw itself on its own clock, so that the clocks of pods and database need not agree.
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

	seen   map[jobs.Role]sighting
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
func (w *Watcher) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
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
		if w.silent(s) {
			errs = append(errs, w.takeOver(ctx, s))
		}
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

// silent says that the role's row has not moved for too long.
func (w *Watcher) silent(s lease.Status) bool {
	if w.seen == nil {
		w.seen = map[jobs.Role]sighting{}
	}
	now, before := w.Now(), w.seen[s.Role]
	if before.status != s {
		w.seen[s.Role] = sighting{s, now}
		return false
	}
	return now.Sub(before.since) >= w.Config.Takeover
}

func (w *Watcher) takeOver(ctx context.Context, s lease.Status) error {
	return db.InTx(ctx, w.Pool, func(tx pgx.Tx) error {
		pending, err := w.Roles[s.Role].Pending(ctx, tx)
		if err != nil || !pending {
			return err
		}
		if paused, err := w.isPaused(ctx, tx, s.Role); err != nil || paused {
			return err
		}
		epoch, ok, err := lease.Advance(ctx, tx, w.Lane, s)
		if err != nil || !ok {
			return err
		}
		delete(w.seen, s.Role)
		w.Log.WarnContext(ctx, "lease taken over", "role", s.Role, "epoch", epoch, "silent_holder", s.Holder)
		return w.Waker.insert(ctx, tx, []wake{{s.Role, jobs.Wake{Lane: w.Lane, Epoch: epoch}}})
	})
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
	if paused && !w.paused[role] {
		w.Log.WarnContext(ctx, "queue paused", "role", role, "hint", "resume it in River UI; what waits is worked off then")
	}
	if w.paused == nil {
		w.paused = map[jobs.Role]bool{}
	}
	w.paused[role] = paused
	return paused, nil
}
