// Package lease is the fence: at any instant one worker in the whole system may commit for a role (design O2, O4).
//
// A role's row in pipeline_lease carries an epoch and a holder. A worker takes the lease under the epoch it was woken
// for; each of its transactions first locks the row and finds its own epoch and name in it. A worker that was stopped,
// cut off or overtaken finds another and is refused. Watchers advance the epoch of a holder that has gone silent.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs"
)

// ErrFenced says that the lease is another's: whatever this worker was about to commit must not be.
var ErrFenced = errors.New("the lease is another worker's")

// Fence is one worker's hold on a role. Safe for concurrent use.
type Fence struct {
	pool   *pgxpool.Pool
	lane   string
	role   jobs.Role
	epoch  int64
	holder string
	q      *pgq.Queries

	turn  atomic.Int64 // of our last transaction that was committed
	chain atomic.Int64 // see Chain
}

// Take makes holder the holder of the role for the epoch of the wake-up, or fails with ErrFenced when that epoch is over.
// holder must be unique to this one run of this one job: a job that River runs twice fences its own first run.
func Take(ctx context.Context, pool *pgxpool.Pool, role jobs.Role, w jobs.Wake, holder string) (*Fence, error) {
	f := &Fence{pool: pool, lane: w.Lane, role: role, epoch: w.Epoch, holder: holder, q: pgq.New()}
	f.turn.Store(-1)
	n, err := f.q.TakeLease(ctx, pool, pgq.TakeLeaseParams{Holder: holder, Lane: w.Lane, Role: string(role), Epoch: w.Epoch})
	if err != nil {
		return nil, fmt.Errorf("take lease of %s: %w", role, db.Classify(err))
	}
	if n == 0 {
		return nil, ErrFenced
	}
	return f, nil
}

// Epoch is the fencing epoch this hold was taken under.
func (f *Fence) Epoch() int64 { return f.epoch }

// Lane is the lane this hold is for.
func (f *Fence) Lane() string { return f.lane }

// Tx runs fn in one transaction that holds the role's row lock and has checked epoch and holder first. Nothing of fn is
// kept when it fails or when the lease is another's (ErrFenced). A failed commit means unknown: the next run finds out.
func (f *Fence) Tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	var turn int64
	err := db.InTx(ctx, f.pool, func(tx pgx.Tx) (err error) {
		if turn, err = f.hold(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if err == nil {
		f.turn.Store(turn)
	}
	return err
}

// Chain names the unbroken row of transactions that the present one, or the last one, of Tx belongs to. As long as it stays the
// same nobody else has written under the role's lock in between, and no commit of ours was lost with a server: what was read or
// written in them is still so.
func (f *Fence) Chain() int64 { return f.chain.Load() }

// Hold locks the role's row in tx and checks that it is still ours.
func (f *Fence) Hold(ctx context.Context, tx pgx.Tx) error {
	_, err := f.hold(ctx, tx)
	return err
}

func (f *Fence) hold(ctx context.Context, tx pgx.Tx) (turn int64, err error) {
	held, err := f.q.HoldLease(ctx, tx, pgq.HoldLeaseParams{Lane: f.lane, Role: string(f.role), Epoch: f.epoch, Holder: f.holder})
	if err := fenced("hold", f.role, int64(len(held)), err); err != nil {
		return 0, err
	}
	if turn = held[0].Turn; turn != f.turn.Load()+1 {
		f.chain.Add(1)
	}
	return turn, nil
}

// Beat shows that the holder lives, and whether it cannot reach what the role needs: any pod that can may then Relieve it. It
// does not wait for a fenced transaction under way, and says nothing then.
func (f *Fence) Beat(ctx context.Context, troubled bool) error {
	_, err := f.q.BeatLease(ctx, f.pool, pgq.BeatLeaseParams{Troubled: troubled, Lane: f.lane, Role: string(f.role), Epoch: f.epoch, Holder: f.holder})
	return db.Classify(err)
}

// Close gives the lease back in tx: from its commit on a wake-up must insert a job.
func (f *Fence) Close(ctx context.Context, tx pgx.Tx) error {
	n, err := f.q.CloseLease(ctx, tx, pgq.CloseLeaseParams{Lane: f.lane, Role: string(f.role), Epoch: f.epoch, Holder: f.holder})
	return fenced("close", f.role, n, err)
}

func fenced(op string, role jobs.Role, rows int64, err error) error {
	if err != nil {
		return fmt.Errorf("%s lease of %s: %w", op, role, db.Classify(err))
	}
	if rows == 0 {
		return ErrFenced
	}
	return nil
}

// Block keeps the workers of a role from committing in any lane until tx ends, without taking the role from them. Their next
// transaction begins a new chain.
func Block(ctx context.Context, tx pgx.Tx, role jobs.Role) error {
	return classified("hold up "+string(role), pgq.New().BlockLeases(ctx, tx, string(role)))
}

// Status is a role's row as it stands.
type Status struct {
	Role      jobs.Role
	Epoch     int64
	Holder    string // empty: no drain is open
	Heartbeat time.Time
	// Troubled says that the holder lives and cannot reach what the role needs.
	Troubled bool
}

// Open says that a drain holds the role and has not closed.
func (s Status) Open() bool { return s.Holder != "" }

// Ensure makes the rows of a lane where they are missing.
func Ensure(ctx context.Context, q db.Querier, lane string, roles []jobs.Role) error {
	err := pgq.New().EnsureLeases(ctx, q, pgq.EnsureLeasesParams{Lane: lane, Roles: names(roles)})
	return classified("make the leases of lane "+lane, err)
}

// Read gives the rows of the roles named.
func Read(ctx context.Context, q db.Querier, lane string, roles []jobs.Role) ([]Status, error) {
	rows, err := pgq.New().Leases(ctx, q, pgq.LeasesParams{Lane: lane, Roles: names(roles)})
	if err != nil {
		return nil, classified("read the leases of lane "+lane, err)
	}
	out := make([]Status, len(rows))
	for i, r := range rows {
		out[i] = Status{Role: jobs.Role(r.Role), Epoch: r.Epoch, Holder: r.Holder, Heartbeat: r.HeartbeatAt, Troubled: r.TroubledAt != nil}
	}
	return out, nil
}

// Advance ends the epoch seen, if its row has not moved since and no transaction holds it, and gives the new one.
// ok is false when there was life after all.
func Advance(ctx context.Context, tx pgx.Tx, lane string, seen Status) (epoch int64, ok bool, err error) {
	epoch, err = pgq.New().AdvanceLease(ctx, tx, pgq.AdvanceLeaseParams{Lane: lane, Role: string(seen.Role), Epoch: seen.Epoch, HeartbeatAt: seen.Heartbeat})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return epoch, err == nil, classified("advance the lease of "+string(seen.Role), err)
}

// Relieve ends the epoch of a holder that says it cannot reach what the role needs, and gives the new one. ok is false when it
// no longer says so, or has a transaction under way.
func Relieve(ctx context.Context, tx pgx.Tx, lane string, seen Status) (epoch int64, ok bool, err error) {
	epoch, err = pgq.New().RelieveLease(ctx, tx, pgq.RelieveLeaseParams{Lane: lane, Role: string(seen.Role), Epoch: seen.Epoch})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return epoch, err == nil, classified("relieve the holder of "+string(seen.Role), err)
}

// LockWakeShared orders an enqueuer, until its commit, against the closing of the roles' drains (O3).
func LockWakeShared(ctx context.Context, tx pgx.Tx, lane string, roles []jobs.Role) error {
	return classified("order a wake-up", pgq.New().LockWakeShared(ctx, tx, pgq.LockWakeSharedParams{Lane: lane, Roles: names(roles)}))
}

// LockWake orders a closing drain, until its commit, against every enqueuer (O3).
func (f *Fence) LockWake(ctx context.Context, tx pgx.Tx) error {
	return classified("order the close", f.q.LockWake(ctx, tx, pgq.LockWakeParams{Lane: f.lane, Role: string(f.role)}))
}

func names(roles []jobs.Role) []string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	return out
}

func classified(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, db.Classify(err))
}
