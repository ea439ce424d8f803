// Package head is the heart: it takes the smallest unfinished messages, decides what they do, and commits flight states,
// events, terminal states, marks owed and wake-ups in one transaction under PIPELINE_LOCK (design §3).
//
// Messages are taken many at a time; the result is that of one by one. Whatever of a batch cannot be committed together
// is tried one message at a time, so that only the guilty one pays (O6).
package head

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
	"msgexchange/workers/drain"
)

// Mailbox is where a text is read again when our own copy is gone (raw.retention).
type Mailbox interface {
	// Text gives the text of a row; found is false when the row is gone too.
	Text(ctx context.Context, id int64) (text []byte, found bool, err error)
}

// Waker wakes the roles that follow.
type Waker interface {
	Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error
	Ring(roles ...jobs.Role)
}

// Config of the head worker.
type Config struct {
	Lane string
	// Batch is the most messages in one transaction (pipeline.head-batch). 1 … 5000.
	Batch int
	// Marks says whether processed marks are owed: not in shadow mode (design §8).
	Marks bool
	// Shadow lets answers in without an open request (contract §8.30).
	Shadow   bool
	Retry    retry.Policy
	Identity message.IdentityPolicy
	Decode   sis.Options
	Flight   flight.Options
	MsgKey   outbox.MsgKey // kafka.msg-key
}

// maxBatchBytes bounds the texts of one batch in memory; a larger single message still goes, alone.
const maxBatchBytes = 16 << 20

// Head is the role. One Step at a time, which workers/drain sees to.
type Head struct {
	config  Config
	pool    *pgxpool.Pool
	store   *store.Store
	mailbox Mailbox
	waker   Waker
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time

	// paid are the messages whose present attempt was charged by us and not concluded: an outage came between. They are
	// not charged again (design §3: an outage is nobody's fault).
	paid map[message.Position]int
	// singlesTo is the last message to be tried alone, because a batch with it could not be committed.
	singlesTo message.Position
	bridges   bridges
	memory    memory
	unread    int64 // the message whose text the mailbox did not give when it was last asked; 0: none

	ahead   ahead        // read while the batch before was committed
	aheadOf *lease.Fence // under this hold
}

// Deps of the head worker.
type Deps struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Mailbox Mailbox
	Waker   Waker
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// New makes the head worker.
func New(c Config, d Deps) *Head {
	return &Head{
		config: c, pool: d.Pool, store: d.Store, mailbox: d.Mailbox, waker: d.Waker, metrics: d.Metrics, log: d.Log, now: d.Now,
		paid: map[message.Position]int{},
	}
}

// Pending says whether anything at or below the watermark is unfinished.
func (h *Head) Pending(ctx context.Context, q db.Querier) (bool, error) {
	return h.store.HeadPending(ctx, q, h.config.Lane)
}

// Step takes the next batch through.
func (h *Head) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	front, err := h.next(ctx, f)
	if err != nil {
		return drain.Next{}, err
	}
	rows := front.rows
	if len(rows) == 0 {
		h.metrics.headAttempts.Set(0)
		return drain.Next{}, nil
	}
	h.metrics.headAttempts.Set(float64(rows[0].Attempts))
	maps.DeleteFunc(h.paid, func(p message.Position, _ int) bool { return rows[0].Pos.After(p) }) // concluded by another pod
	batch, wait := h.pick(rows, h.now())
	if wait > 0 {
		return drain.Next{Wait: min(wait, drain.LongestNap)}, nil // an older one may be put back meanwhile
	}
	if err := h.askAgain(ctx, batch); err != nil {
		return drain.Next{}, err
	}
	if err := h.work(ctx, f, batch, front.texts); err != nil {
		return drain.Next{}, err
	}
	return drain.Next{Again: true}, nil
}

// pick gives the messages to take together: those in front that have never been tried, or the first alone. A first one in
// backoff holds everything behind it (O1): wait.
func (h *Head) pick(rows []store.Unfinished, now time.Time) (batch []store.Unfinished, wait time.Duration) {
	if wait := rows[0].NextAttempt.Sub(now); wait > 0 {
		return nil, wait
	}
	if h.alone(rows[0]) {
		return rows[:1], 0
	}
	if i := slices.IndexFunc(rows, h.alone); i > 0 {
		rows = rows[:i]
	}
	return rows[:fitting(rows)], 0
}

// alone says that r must not share its transaction: it failed before, or a worker died with it in hand, or a batch with it
// could not be committed.
func (h *Head) alone(r store.Unfinished) bool {
	tried := r.Attempts > 0 && h.paid[r.Pos] != r.Attempts
	return tried || r.State == message.Failed || !r.Pos.After(h.singlesTo)
}

// work takes a batch through; texts are those of its messages that were read already.
func (h *Head) work(ctx context.Context, f *lease.Fence, batch []store.Unfinished, texts map[message.Position]store.Raw) error {
	started := time.Now()
	batch, err := h.charge(ctx, f, batch)
	if err != nil || len(batch) == 0 {
		return err
	}
	following := h.readAhead(ctx, batch)
	msgs, done, err := h.try(ctx, f, batch, texts)
	h.ahead, h.aheadOf = <-following, f
	switch {
	case err == nil:
	case nobodysFault(ctx, err):
		return errors.Join(err, h.refund(ctx, f, batch, err))
	case len(batch) > 1:
		h.log.WarnContext(ctx, "batch refused", "first_msg_id", batch[0].Pos.ID, "size", len(batch), "error", fault.Text(err))
		h.singlesTo = batch[len(batch)-1].Pos
		return nil
	default:
		if done, err = h.blame(ctx, f, msgs[0], err); err != nil {
			return err
		}
	}
	for _, r := range batch {
		delete(h.paid, r.Pos)
	}
	h.waker.Ring(followers()...)
	took := time.Since(started)
	h.metrics.seconds.Observe(took.Seconds())
	h.tell(ctx, done, took)
	return nil
}

// try takes a batch from its texts to the commit. A panic on the way is a failure like any other. msgs are there next to an
// error too, read or not.
func (h *Head) try(ctx context.Context, f *lease.Fence, batch []store.Unfinished, texts map[message.Position]store.Raw) (msgs []input, done run, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Infra, "process", "panic: %v\n%s", p, debug.Stack())
		}
	}()
	msgs = make([]input, len(batch))
	for i, r := range batch {
		msgs[i].row = r
	}
	if err := h.read(ctx, batch, texts, msgs); err != nil {
		return msgs, run{}, err
	}
	done, err = h.commit(ctx, f, msgs)
	return msgs, done, err
}

// nobodysFault says that err is no message's: we were overtaken or stopped, or something we need was away.
func nobodysFault(ctx context.Context, err error) bool {
	return errors.Is(err, lease.ErrFenced) || ctx.Err() != nil || fault.Of(err) == fault.Outage
}

// charge puts the attempt on record (O5) and gives the messages that may be tried. One whose attempts are spent without a
// verdict killed its worker each time: it is DEAD without another try.
func (h *Head) charge(ctx context.Context, f *lease.Fence, batch []store.Unfinished) ([]store.Unfinished, error) {
	now := h.now()
	var due []*store.Unfinished
	var ids []int64
	for i := range batch {
		r := &batch[i]
		if h.paid[r.Pos] == r.Attempts && r.Attempts > 0 {
			continue // charged by us, then an outage came
		}
		if h.config.Retry.Spent(r.Attempts) {
			return nil, h.bury(ctx, f, *r, now)
		}
		due, ids = append(due, r), append(ids, r.Pos.ID)
	}
	// Remembered before it is stored: when the answer to the commit is lost, the row itself tells later whether it was.
	for _, r := range due {
		h.paid[r.Pos] = r.Attempts + 1
	}
	if len(ids) > 0 {
		if err := f.Tx(ctx, func(tx pgx.Tx) error { return h.store.Charge(ctx, tx, ids, now) }); err != nil {
			return nil, err
		}
	}
	for _, r := range due {
		r.Attempts++
		if r.Started.IsZero() {
			r.Started = now
		}
	}
	return batch, exitHook(batch)
}

// bury ends a message that took its worker with it each time.
func (h *Head) bury(ctx context.Context, f *lease.Fence, r store.Unfinished, now time.Time) error {
	j := judged{row: r, verdict: retry.Verdict{State: message.Dead, Class: fault.Exhausted, Root: fault.Infra}}
	j.err = &fault.Error{Class: fault.Infra, Op: "process", MsgID: r.Pos.ID, Err: errors.New("no attempt came to a verdict: the process ended, or the verdict was refused")}
	if err := h.conclude(ctx, f, j, now); err != nil {
		return err
	}
	h.waker.Ring(jobs.RoleBackfill)
	h.tell(ctx, run{judged: []judged{j}}, 0)
	return nil
}

// blame records the failure of a message that was alone in its transaction. Should even that be refused, its next try is
// charged again, so that it cannot hold the line for ever.
func (h *Head) blame(ctx context.Context, f *lease.Fence, m input, cause error) (run, error) {
	now := h.now()
	j := judged{row: m.row, msg: m.msg, err: cause, verdict: h.config.Retry.Failed(fault.Of(cause), m.row.Attempts, m.row.Started, now)}
	err := h.conclude(ctx, f, j, now)
	if err != nil && !nobodysFault(ctx, err) {
		delete(h.paid, m.row.Pos)
	}
	return run{judged: []judged{j}}, err
}

// conclude writes one message's verdict and nothing else.
func (h *Head) conclude(ctx context.Context, f *lease.Fence, j judged, now time.Time) error {
	return f.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := h.store.Finish([]store.Finished{j.finished(h.config.Marks)}, now)(ctx, tx); err != nil {
			return err
		}
		return h.waker.Wake(ctx, tx, jobs.RoleBackfill)
	})
}

// input is a message of the batch, read and decoded.
type input struct {
	row store.Unfinished
	msg sis.Message
	err error
}

// read fetches the texts of a batch and decodes them into msgs, on all cores, each taking the next message when it is done with
// one: a schedule among them may take as long as all others.
func (h *Head) read(ctx context.Context, batch []store.Unfinished, texts map[message.Position]store.Raw, msgs []input) error {
	texts, err := h.texts(ctx, batch, texts)
	if err != nil {
		return err
	}
	var g sync.WaitGroup
	var taken atomic.Int64
	for range min(len(batch), runtime.GOMAXPROCS(0)) {
		g.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(batch)); i = taken.Add(1) - 1 {
				pos := batch[i].Pos
				msgs[i].msg, msgs[i].err = decode(texts[pos], h.config.Decode, pos.ID)
			}
		})
	}
	g.Wait()
	return nil
}

// texts gives our copies, unless they were read already, or the mailbox's where ours is gone.
func (h *Head) texts(ctx context.Context, batch []store.Unfinished, texts map[message.Position]store.Raw) (map[message.Position]store.Raw, error) {
	if texts == nil {
		var err error
		if texts, err = h.store.RawTexts(ctx, h.pool, positions(batch)); err != nil {
			return nil, err
		}
	}
	for _, r := range batch {
		if _, ok := texts[r.Pos]; ok {
			continue
		}
		text, found, err := h.reread(ctx, r.Pos.ID)
		if err != nil {
			return nil, err
		}
		if found {
			texts[r.Pos] = store.Raw{Text: text}
		}
	}
	return texts, nil
}

func followers() []jobs.Role { return []jobs.Role{jobs.RoleMsg, jobs.RoleSchd, jobs.RoleBackfill} }
