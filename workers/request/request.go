// Package request sends what was registered to the airport's database, watches it and gives it up in time (design §9). The
// role looks at the open requests only; it is idle, and asks the mailbox nothing, while there are none. Answers come back by
// the inbox and are the head's.
//
// A request stands in the mailbox exactly once, however often a worker dies on the way: its text, with a number of its own,
// is on record before it is sent, and sending looks for that text first (K22's rule for the way out).
package request

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/request"
	"msgexchange/workers/drain"
)

// Mailbox is COUTMSGS.
type Mailbox interface {
	// Clock is the server's clock, to the second.
	Clock(ctx context.Context) (time.Time, error)
	// SendRequest makes sure that text stands there exactly once.
	SendRequest(ctx context.Context, text, routingID string) (id int64, at time.Time, err error)
	// Taken gives, of the rows named, those that the transport has taken, and when.
	Taken(ctx context.Context, ids []int64) (map[int64]time.Time, error)
}

// Config of the role; from request.* of the configuration.
type Config struct {
	Policy                   request.Policy
	RoutingRQFD, RoutingRQRD string
	// Shadow sends nothing: what is registered expires.
	Shadow bool
	// MailboxTimeout bounds one call of the mailbox, so that requests expire in time while it hangs. Default 5s.
	MailboxTimeout time.Duration
}

const defaultMailboxTimeout = 5 * time.Second

// Deps of the role.
type Deps struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Mailbox Mailbox
	Log     *slog.Logger
	Now     func() time.Time
}

// Requests is the role. One Step at a time, which workers/drain sees to.
type Requests struct {
	config Config
	deps   Deps
}

// New makes the role.
func New(c Config, d Deps) *Requests {
	c.MailboxTimeout = cmp.Or(c.MailboxTimeout, defaultMailboxTimeout)
	return &Requests{config: c, deps: d}
}

// Pending says whether any request is open.
func (r *Requests) Pending(ctx context.Context, q db.Querier) (bool, error) {
	return r.deps.Store.RequestPending(ctx, q)
}

// lookPeriod is the pause between looks while any request is open: whether the transport has taken one, and whether another pod
// has registered one, which rings no bell here and whose caller waits for five seconds.
const lookPeriod = time.Second

// Step does all that is due about the open requests. What needs no mailbox comes first, so that requests expire in time
// while it is away.
func (r *Requests) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	now := r.deps.Now()
	open, err := r.deps.Store.OpenRequests(ctx, r.deps.Pool)
	if err != nil || len(open) == 0 {
		return drain.Next{}, err
	}
	due := r.config.Policy.Plan(open, now)
	if err := r.expire(ctx, f, due.Expire, now); err != nil {
		return drain.Next{}, err
	}
	if !r.config.Shadow {
		if err := errors.Join(r.sendAll(ctx, f, due.Send), r.watch(ctx, f, due.Watch)); err != nil {
			return drain.Next{}, err
		}
	}
	if due.Next.IsZero() {
		return drain.Next{Again: true}, nil
	}
	return drain.Next{Wait: min(lookPeriod, due.Next.Sub(now))}, nil
}

func (r *Requests) expire(ctx context.Context, f *lease.Fence, due []request.Request, now time.Time) error {
	if len(due) == 0 {
		return nil
	}
	ids := make([]int64, len(due))
	for i, q := range due {
		ids[i] = q.ID
	}
	err := f.Tx(ctx, func(tx pgx.Tx) error {
		return r.deps.Store.ExpireRequests(ctx, tx, ids, request.TimedOut, now, request.Registered, request.Sent, request.Waiting)
	})
	if err != nil {
		return err
	}
	for _, q := range due {
		r.deps.Log.WarnContext(ctx, "request expired", "request_id", q.ID, "kind", q.Kind, "state", q.State)
	}
	return nil
}

// sendAll sends in the order of registration. One that fails by itself keeps no other back; with the mailbox or our database
// away, or the lease lost, nothing more is tried.
func (r *Requests) sendAll(ctx context.Context, f *lease.Fence, due []request.Request) error {
	var errs []error
	for _, q := range due {
		err := r.send(ctx, f, q)
		errs = append(errs, err)
		if fault.Of(err) == fault.Outage || errors.Is(err, lease.ErrFenced) {
			break
		}
	}
	return errors.Join(errs...)
}

// send puts a request into the mailbox, between a transaction that says so before and one that says so after. Should the
// second one not come, the request is sent again, and found.
func (r *Requests) send(ctx context.Context, f *lease.Fence, q request.Request) error {
	if q.SendingAt.IsZero() {
		at, err := r.mailboxTime(ctx)
		if err != nil {
			return err
		}
		wanted := false
		err = f.Tx(ctx, func(tx pgx.Tx) (err error) {
			wanted, err = r.deps.Store.BeginRequest(ctx, tx, q.ID, at)
			return err
		})
		if err != nil || !wanted {
			return err
		}
	}
	id, at, err := r.put(ctx, q)
	if err != nil {
		return err
	}
	sentHook()
	now := r.deps.Now()
	if err := f.Tx(ctx, func(tx pgx.Tx) error { return r.deps.Store.SentRequest(ctx, tx, q.ID, id, at, now) }); err != nil {
		return err
	}
	r.deps.Log.InfoContext(ctx, "request sent", "request_id", q.ID, "kind", q.Kind, "seqn", q.SEQN, "coutmsgs_id", id)
	return nil
}

func (r *Requests) mailboxTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.MailboxTimeout)
	defer cancel()
	return r.deps.Mailbox.Clock(ctx)
}

func (r *Requests) put(ctx context.Context, q request.Request) (id int64, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.MailboxTimeout)
	defer cancel()
	return r.deps.Mailbox.SendRequest(ctx, q.Body, r.routing(q))
}

func (r *Requests) taken(ctx context.Context, rows []int64) (map[int64]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.MailboxTimeout)
	defer cancel()
	return r.deps.Mailbox.Taken(ctx, rows)
}

func (r *Requests) routing(q request.Request) string {
	if q.Kind == request.Schedule {
		return r.config.RoutingRQFD
	}
	return r.config.RoutingRQRD
}

// watch looks which requests the transport has taken.
func (r *Requests) watch(ctx context.Context, f *lease.Fence, due []request.Request) error {
	if len(due) == 0 {
		return nil
	}
	rows, byRow := make([]int64, len(due)), map[int64]int64{}
	for i, q := range due {
		rows[i] = q.MailboxID
		byRow[q.MailboxID] = q.ID
	}
	found, err := r.taken(ctx, rows)
	if err != nil || len(found) == 0 {
		return err
	}
	taken := make(map[int64]time.Time, len(found))
	for row, at := range found {
		if at.IsZero() {
			at = r.deps.Now() // taken, and the mailbox does not say when
		}
		taken[byRow[row]] = at
	}
	return f.Tx(ctx, func(tx pgx.Tx) error { return r.deps.Store.TakenRequests(ctx, tx, taken) })
}
