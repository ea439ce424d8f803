// Package backfill pays the processed marks owed to the mailbox, off the head's path (design §8).
//
// A mark lives in MySQL and the debt in PostgreSQL, so no transaction spans both. A step therefore claims due debts in
// one transaction, writes the marks outside of any, and settles in another, only where the debt is still the same. A
// claimed message cannot be put back by a replay, and a message put back is no debt any more when the claim is made: the
// row lock of proc_state decides who was first. A worker that dies in between leaves a claim that runs out by itself;
// the next one finds the mark written and settles.
package backfill

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
)

// Mailbox is where the marks go.
type Mailbox interface {
	// Mark writes the marks at moment at and answers them in their order. Next to an error the answers may be fewer: of the
	// others nothing is known.
	Mark(ctx context.Context, marks []backfill.Mark, at time.Time) ([]backfill.Answer, error)
}

// Config of the backfill worker (backfill.* and mailbox.* in the contract).
type Config struct {
	// Batch is the most marks written together.
	Batch  int
	Policy backfill.Policy
	Values backfill.Values
}

const (
	// markTimeout bounds the writing of one batch, and claim outlives it: while a mark may still be written, its message
	// stays claimed.
	markTimeout = 10 * time.Second
	claim       = 2 * markTimeout
	// gather is the least time between a batch that was not full and the next look, so that marks come together: a mark is in
	// no hurry, and what it costs the databases the head needs.
	gather = 200 * time.Millisecond
	// While a crowd of messages is unfinished, marks stand back: whoever waits for flight data comes before bookkeeping, and
	// both cost the same two databases. They do so for patience at a time, so that neither a line held up by one message nor a
	// backlog of hours keeps the mailbox waiting longer.
	crowd    = 200
	patience = 10 * time.Second
	// longestSleep bounds a pause, so that a debt made due by an operator is seen.
	longestSleep = 15 * time.Second
	// notToBeHad is the pause when debts are due and none could be claimed.
	notToBeHad = time.Second
)

// Backfill is the role. One Step at a time.
type Backfill struct {
	config  Config
	pool    *pgxpool.Pool
	store   *store.Store
	mailbox Mailbox
	log     *slog.Logger
	now     func() time.Time
	gather  time.Duration

	notBefore time.Time // of the next look
	crowded   time.Time // since when the line has been crowded; zero when it is not
	dry       bool      // the last one found nothing
	away      bool      // the mailbox was not there when it was last asked
}

// Deps of the backfill worker.
type Deps struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Mailbox Mailbox
	Log     *slog.Logger
	Now     func() time.Time
}

// New makes the backfill worker.
func New(c Config, d Deps) *Backfill {
	return &Backfill{config: c, pool: d.Pool, store: d.Store, mailbox: d.Mailbox, log: d.Log, now: d.Now, gather: gather}
}

// Pending says whether any mark is owed, now or later.
func (b *Backfill) Pending(ctx context.Context, q db.Querier) (bool, error) {
	return b.store.DebtPending(ctx, q)
}

// Step pays one batch.
func (b *Backfill) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	if early := b.notBefore.Sub(b.now()); early > 0 {
		if b.dry {
			return drain.Next{}, nil // the drain may close, which looks once more
		}
		return drain.Next{Wait: early, Away: b.away}, nil
	}
	if back, err := b.standBack(ctx); err != nil || back {
		return drain.Next{Wait: b.gather}, err
	}
	debts, err := b.claim(ctx, f)
	if err != nil {
		return drain.Next{}, err
	}
	b.dry = len(debts) == 0
	if len(debts) < b.config.Batch {
		b.notBefore = b.now().Add(b.gather)
	}
	if b.dry {
		return b.sleep(ctx)
	}
	answers, err := b.mark(ctx, debts)
	if b.away = fault.Of(err) == fault.Outage; b.away {
		b.notBefore = time.Time{} // the drain spaces the tries
	}
	if n := len(answers); n < len(debts) {
		err = errors.Join(err, b.release(ctx, f, debts[n:]))
		debts = debts[:n]
	}
	return drain.Next{Again: true}, errors.Join(err, b.settle(ctx, f, debts, answers))
}

// standBack says that the line needs the databases more than the marks do.
func (b *Backfill) standBack(ctx context.Context) (bool, error) {
	crowded, err := b.store.LineCrowded(ctx, b.pool, crowd)
	if err != nil || !crowded {
		b.crowded = time.Time{}
		return false, err
	}
	now := b.now()
	if b.crowded.IsZero() {
		b.crowded = now
	}
	if now.Sub(b.crowded) >= patience {
		return false, nil
	}
	b.dry, b.notBefore = false, now.Add(b.gather)
	return true, nil
}

func (b *Backfill) claim(ctx context.Context, f *lease.Fence) (debts []backfill.Debt, err error) {
	now := b.now()
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		if err := b.store.Relax(ctx, tx); err != nil {
			return err
		}
		debts, err = b.store.ClaimDebts(ctx, tx, f.Lane(), b.config.Batch, now, now.Add(claim))
		return err
	})
	return debts, err
}

// mark writes into the mailbox; it holds no transaction and no lock of ours.
func (b *Backfill) mark(ctx context.Context, debts []backfill.Debt) ([]backfill.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	marks := make([]backfill.Mark, len(debts))
	for i, d := range debts {
		marks[i] = d.Mark(b.config.Values)
	}
	answers, err := b.mailbox.Mark(ctx, marks, b.now())
	if err == nil && len(answers) != len(marks) {
		return nil, fault.New(fault.Infra, "mark", "%d answers to %d marks", len(answers), len(marks))
	}
	return answers, err
}

// release gives the claims of a mailbox that could not be asked back; no attempt is spent (K15).
func (b *Backfill) release(ctx context.Context, f *lease.Fence, debts []backfill.Debt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	now := b.now()
	all := make([]backfill.Settlement, len(debts))
	for i, d := range debts {
		all[i] = backfill.Unasked(d, now)
	}
	_, err := b.write(ctx, f, all, now)
	return err
}

// settle writes what the answers lead to, also when the time of the step is over: they are known.
func (b *Backfill) settle(ctx context.Context, f *lease.Fence, debts []backfill.Debt, answers []backfill.Answer) error {
	if len(debts) == 0 {
		return nil
	}
	now := b.now()
	all := make([]backfill.Settlement, len(debts))
	for i, d := range debts {
		all[i] = b.config.Policy.Settle(d, answers[i], now)
	}
	settled, err := b.write(ctx, f, all, now)
	if err == nil {
		b.tell(ctx, all, answers, settled)
	}
	return err
}

// write settles in one transaction, which need not reach the disk, as the claim need not: after a crash the next try
// finds the mark written.
func (b *Backfill) write(ctx context.Context, f *lease.Fence, all []backfill.Settlement, now time.Time) (settled int64, err error) {
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		if err := b.store.Relax(ctx, tx); err != nil {
			return err
		}
		settled, err = b.store.SettleDebts(ctx, tx, all, now)
		return err
	})
	return settled, err
}

// sleep waits for the next debt to be due. One that is due and was not to be had is another's for the moment, or the lane is
// stopped.
func (b *Backfill) sleep(ctx context.Context) (drain.Next, error) {
	due, err := b.store.NextDebt(ctx, b.pool)
	if err != nil || due.IsZero() {
		return drain.Next{}, err
	}
	wait := due.Sub(b.now())
	if wait <= 0 {
		wait = notToBeHad
	}
	return drain.Next{Wait: min(wait, longestSleep), Away: b.away}, nil
}

// tell logs a batch once it is settled.
func (b *Backfill) tell(ctx context.Context, all []backfill.Settlement, answers []backfill.Answer, settled int64) {
	counts := map[backfill.Result]int{}
	for i, s := range all {
		counts[answers[i].Result]++
		switch {
		case s.Reason != "":
			b.log.ErrorContext(ctx, "mark given up", "msg_id", s.Debt.Pos.ID, "reason", string(s.Reason), "attempt", s.Debt.Attempts, "error", s.Error, "trace_id", outbox.TraceID(s.Debt.Pos))
		case s.Error != "":
			b.log.WarnContext(ctx, "mark failed", "msg_id", s.Debt.Pos.ID, "attempt", s.Debt.Attempts, "next_at", s.Next, "error", s.Error, "trace_id", outbox.TraceID(s.Debt.Pos))
		}
	}
	b.log.DebugContext(ctx, "marks written", "size", len(all), "settled", settled, "written", counts[backfill.Written],
		"already", counts[backfill.Already], "missing", counts[backfill.Missing], "transient", counts[backfill.Transient])
}
