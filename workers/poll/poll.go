// Package poll takes rows of the shared mailbox over into our own database, in the order of their ids, each once, never
// past a hole that still holds (design §4). It reads the mailbox only outside of transactions, and moves the watermark,
// the rows, their texts and the wake-up of the head in one.
package poll

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
	"msgexchange/workers/drain"
)

// Mailbox is what a round reads.
type Mailbox interface {
	// After gives up to limit rows with ids above after, ascending.
	After(ctx context.Context, after int64, limit int) ([]inbox.Row, error)
	// Texts gives the rows with ids in r with their texts, ascending, one by one. An error ends it.
	Texts(ctx context.Context, r inbox.Range) iter.Seq2[inbox.Message, error]
	// In gives up to limit rows whose ids lie in the ranges, ascending.
	In(ctx context.Context, ranges []inbox.Range, limit int) ([]inbox.Row, error)
}

// Server is what is known of the mailbox as a whole.
type Server interface {
	// Facts gives the smallest and the largest id, and the distance between neighbouring ids.
	Facts(ctx context.Context) (inbox.Extent, int64, error)
}

// Prober gives evidence about holes (pipeline.hole-probe).
type Prober interface {
	// OldestTransaction says how long the oldest open transaction of the mailbox's server has been open, to the second;
	// zero when none is. known is false when that is in doubt.
	OldestTransaction(ctx context.Context) (age time.Duration, known bool, err error)
}

// Waker wakes the roles that follow.
type Waker interface {
	Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error
	Ring(roles ...jobs.Role)
}

// Config of the poller (pipeline.* in the contract).
type Config struct {
	Lane string
	Pace inbox.Pace // poll-interval and busy-interval
	// Batch is the most rows one round takes (claim-batch).
	Batch            int
	MaxCommitDelay   inbox.CommitDelay
	Late             inbox.Policy
	LateDetectPeriod time.Duration
	Cutover          inbox.Cutover // cutover-watermark
}

const (
	// lookahead is how many ids more a round reads when a hole holds the rows back, so that holes further up are seen and
	// age with it (K13).
	lookahead = 10_000
	// maxPackedBytes bounds the packed texts one round holds in memory.
	maxPackedBytes = 16 << 20
	// pollMark is how often an idle lane notes in our database that the mailbox could be read.
	pollMark = 10 * time.Second
	// readTimeout bounds one read of the mailbox.
	readTimeout = 20 * time.Second
	// probeMargin covers whole seconds, a stale list and the moment between an id and its transaction's start.
	probeMargin = 3 * time.Second
)

// Poll is the role. One Step at a time.
type Poll struct {
	config  Config
	pool    *pgxpool.Pool
	store   *store.Store
	mailbox Mailbox
	server  Server
	prober  Prober
	waker   Waker
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time

	begun      bool
	step       int64 // of ids, as the server said last
	pause      time.Duration
	lookedBack time.Time
	cleaned    bool           // told that the mailbox ends below the watermark
	told       map[int64]bool // late rows that are only reported
	edited     map[int64]bool // rows whose text was changed after we took it
	generation int32          // what the maps are about
	cleared    int64          // the watermark whose row was found newer than it should be, and looked into
}

// Deps of the poller.
type Deps struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Mailbox Mailbox
	Server  Server
	Prober  Prober // nil: holes pass by age alone
	Waker   Waker
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// New makes the poller.
func New(c Config, d Deps) *Poll {
	return &Poll{
		config: c, pool: d.Pool, store: d.Store, mailbox: d.Mailbox, server: d.Server, prober: d.Prober,
		waker: d.Waker, metrics: d.Metrics, log: d.Log, now: d.Now, told: map[int64]bool{}, edited: map[int64]bool{},
	}
}

// Pending says that the lane runs: a mailbox is never done with.
func (p *Poll) Pending(ctx context.Context, q db.Querier) (bool, error) {
	return p.store.InboxRuns(ctx, q, p.config.Lane)
}

// Step is one round, with a look back when it is time for one.
func (p *Poll) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	if !p.begun {
		if err := p.begin(ctx, f); err != nil {
			return drain.Next{}, err
		}
		p.begun = true
	}
	in, _, err := p.store.Inbox(ctx, p.pool, p.config.Lane)
	if err != nil || in.Stopped != "" {
		return drain.Next{}, err
	}
	in.Cursor.Step = p.step
	p.enter(in.Cursor.Generation)
	if now := p.now(); now.Sub(p.lookedBack) >= p.config.LateDetectPeriod {
		stopped, err := p.lookBack(ctx, f, in.Cursor)
		if err != nil || stopped {
			return drain.Next{}, ignoreMoved(err)
		}
		p.lookedBack = now
	}
	r, err := p.read(ctx, in.Cursor)
	if errors.Is(err, errSuspect) {
		p.cleared, p.lookedBack = in.Cursor.W, time.Time{}
		return drain.Next{Again: true}, nil
	}
	if err != nil {
		return drain.Next{}, err
	}
	if err := p.commit(ctx, f, in, r); err != nil {
		return drain.Next{Again: errors.Is(err, errMoved)}, ignoreMoved(err)
	}
	p.tell(ctx, r)
	return p.next(r), nil
}

// errMoved says that the cursor is no longer where the round began: it is void, and the next one begins anew.
var errMoved = errors.New("the inbox cursor has moved")

// errSuspect says that the row at the watermark is newer than anything we took: before more is taken, it is looked into.
var errSuspect = errors.New("the row at the watermark is not the one taken over")

// enter forgets what was known of the ids of another generation.
func (p *Poll) enter(generation int32) {
	if generation != p.generation {
		clear(p.told)
		clear(p.edited)
		p.generation, p.cleaned, p.cleared, p.lookedBack = generation, false, 0, time.Time{}
	}
}

func ignoreMoved(err error) error {
	if errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// round is what one look at the mailbox leads to.
type round struct {
	before   inbox.Cursor
	plan     inbox.Plan
	incoming []store.Incoming
	at       time.Time // when the look began: holes age by it
	top      int64     // highest id seen
	badDates int
}

// changed says that there is something to write.
func (r round) changed() bool {
	return r.plan.Cursor.W != r.before.W || !slices.Equal(r.plan.Cursor.Holes, r.before.Holes)
}

// read looks at the mailbox and plans what to take. It changes nothing.
func (p *Poll) read(ctx context.Context, c inbox.Cursor) (round, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	limits := inbox.Limits{Take: p.config.Batch, Delay: p.config.MaxCommitDelay}
	var err error
	if limits.Settled, err = p.settled(ctx, c); err != nil {
		return round{}, err
	}
	r := round{before: c, at: p.now(), top: c.W}
	rows, err := p.above(ctx, c) // after the probe: what has ended by then is seen now
	if err != nil {
		return r, err
	}
	r.plan = inbox.Advance(c, rows, limits, r.at)
	if r.plan.Held() && len(rows) == p.config.Batch {
		further, err := p.mailbox.After(ctx, rows[len(rows)-1].ID, lookahead)
		if err != nil {
			return r, err
		}
		rows = append(rows, further...)
		r.plan = inbox.Advance(c, rows, limits, r.at)
	}
	if len(rows) > 0 {
		r.top = rows[len(rows)-1].ID
	}
	if r.incoming, r.badDates, err = p.load(ctx, r.plan.Take); err != nil {
		return r, err
	}
	if limits.Take = len(r.incoming); limits.Take < len(r.plan.Take) {
		r.plan = inbox.Advance(c, rows, limits, r.at)
	}
	return r, nil
}

// above gives the next rows above W. The row at W is read with them: ids that start again come by it before they pass W,
// and must not be taken for what follows (K14).
func (p *Poll) above(ctx context.Context, c inbox.Cursor) ([]inbox.Row, error) {
	if c.W == 0 {
		return p.mailbox.After(ctx, 0, p.config.Batch)
	}
	rows, err := p.mailbox.After(ctx, c.W-1, p.config.Batch+1)
	if err != nil || len(rows) == 0 || rows[0].ID != c.W {
		return rows[:min(len(rows), p.config.Batch)], err
	}
	if !c.ReceivedAt.IsZero() && rows[0].ReceivedAt.After(c.ReceivedAt) && p.cleared != c.W {
		return nil, errSuspect
	}
	return rows[1:], nil
}

// settled is the moment before which every transaction of the mailbox has ended, as far as the server shows; zero when
// there is no hole to ask for, or no evidence.
func (p *Poll) settled(ctx context.Context, c inbox.Cursor) (time.Time, error) {
	now := p.now()
	if p.prober == nil || len(c.Holes) == 0 || now.Sub(c.Holes[0].FirstSeen) < probeMargin {
		return time.Time{}, nil
	}
	age, known, err := p.prober.OldestTransaction(ctx)
	if err != nil || !known {
		return time.Time{}, err
	}
	return now.Add(-age - probeMargin), nil
}

// load reads and packs the texts of rows; of the first ones only, when all would take too much memory.
func (p *Poll) load(ctx context.Context, rows []inbox.Row) (out []store.Incoming, badDates int, err error) {
	if len(rows) == 0 {
		return nil, 0, nil
	}
	bytes := 0
	for m, err := range p.mailbox.Texts(ctx, inbox.Range{First: rows[0].ID, Last: rows[len(rows)-1].ID}) {
		if err != nil {
			return nil, 0, err
		}
		for len(out) < len(rows) && rows[len(out)].ID < m.ID {
			out = append(out, store.Gone(rows[len(out)]))
		}
		if len(out) == len(rows) || rows[len(out)].ID != m.ID {
			continue // committed after the look, where a hole was passed: the look back finds it
		}
		if m.BadDate {
			badDates++
		}
		in := p.store.Incoming(m)
		out = append(out, in)
		if bytes += in.PackedBytes(); bytes >= maxPackedBytes {
			return out, badDates, nil
		}
	}
	for len(out) < len(rows) {
		out = append(out, store.Gone(rows[len(out)]))
	}
	return out, badDates, nil
}

// commit writes the round in one transaction, if the cursor is still where it began. It need not reach the disk: what a
// crash takes is still in the mailbox, and a head that has worked on it has made it durable.
func (p *Poll) commit(ctx context.Context, f *lease.Fence, in store.Inbox, r round) error {
	if !r.changed() && r.at.Sub(in.PolledAt) < pollMark {
		return nil
	}
	moved := r.plan.Cursor.W != r.before.W
	err := f.Tx(ctx, func(tx pgx.Tx) error {
		if err := p.store.Relax(ctx, tx); err != nil {
			return err
		}
		if err := p.lock(ctx, tx, r.before); err != nil {
			return err
		}
		if !r.changed() {
			return p.store.InboxPolled(ctx, tx, p.config.Lane, r.at)
		}
		if _, err := p.store.Enqueue(ctx, tx, r.before.Generation, r.incoming, false, r.at); err != nil {
			return err
		}
		if err := p.store.SaveInbox(ctx, tx, p.config.Lane, r.before, r.plan, r.at); err != nil {
			return err
		}
		if !moved {
			return nil
		}
		return p.waker.Wake(ctx, tx, jobs.RoleHead)
	})
	if err == nil && moved {
		p.waker.Ring(jobs.RoleHead)
	}
	return err
}

// lock takes the cursor's row lock and makes sure that c is where it stands.
func (p *Poll) lock(ctx context.Context, tx pgx.Tx, c inbox.Cursor) error {
	same, err := p.store.LockInbox(ctx, tx, p.config.Lane, c)
	if err == nil && !same {
		err = errMoved
	}
	return err
}

// next paces the rounds; a hole about to be passed is not overslept.
func (p *Poll) next(r round) drain.Next {
	news := r.changed()
	full := r.plan.More || len(r.plan.Take) == p.config.Batch
	p.pause = p.config.Pace.After(p.pause, news, full)
	if full {
		return drain.Next{Again: true}
	}
	wait := p.pause
	if release := r.plan.NextRelease(p.config.MaxCommitDelay); !release.IsZero() {
		wait = min(wait, max(release.Sub(p.now()), time.Millisecond))
	}
	return drain.Next{Wait: wait}
}

// tell counts and logs a round once it is committed.
func (p *Poll) tell(ctx context.Context, r round) {
	c := r.plan.Cursor
	p.metrics.polled(r.at, r.top-c.W)
	if len(r.incoming) > 0 {
		p.log.DebugContext(ctx, "messages taken over", "lane", p.config.Lane, "size", len(r.incoming), "watermark", c.W)
	}
	if r.badDates > 0 {
		p.metrics.badDates.Add(float64(r.badDates))
		p.log.WarnContext(ctx, "received dates unreadable", "lane", p.config.Lane, "rows", r.badDates, "watermark", c.W)
	}
	for _, h := range r.plan.Released {
		p.metrics.agedOut.Inc()
		p.log.WarnContext(ctx, "hole passed", "lane", p.config.Lane, "first_id", h.First, "last_id", h.Last, "age", r.at.Sub(h.FirstSeen).String())
	}
}
