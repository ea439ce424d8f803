package request

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
	"msgexchange/jobs/sis"
)

// Waker makes sure that the role looks at what was registered.
type Waker interface {
	Wake(ctx context.Context, tx pgx.Tx, roles ...jobs.Role) error
	Ring(roles ...jobs.Role)
}

// Site is how this site asks; from request.* of the configuration.
type Site struct {
	Kinds []message.Kind // that may be asked for
	SNDR  string
	Zone  *time.Location // of the airport: the times in a request are in it
}

// Desk is where requests are registered: by HTTP, by operators, by schedules. Safe for concurrent use.
type Desk struct {
	Site  Site
	Pool  *pgxpool.Pool
	Store *store.Store
	Waker Waker
	Now   func() time.Time
}

// Kinds lists the kinds that may be asked for.
func (d *Desk) Kinds() []message.Kind { return slices.Clone(d.Site.Kinds) }

// Register puts a request of the kind on record in tx; it is sent once tx is committed and jobs.RoleRequest is woken. The
// open one of its kind, if there is one, expires. window is that of a schedule request. actor is who asks. request.KindError
// when the site does not make such requests.
func (d *Desk) Register(ctx context.Context, tx pgx.Tx, kind message.Kind, window request.Window, actor string) (request.Request, error) {
	r := request.Request{Kind: kind, State: request.Registered, Window: window, RegisteredAt: d.Now()}
	if !slices.Contains(d.Site.Kinds, kind) {
		return r, request.KindError{Kind: kind}
	}
	if err := d.Store.LockRequestKind(ctx, tx, kind); err != nil {
		return r, err
	}
	if err := d.Store.SupersedeRequest(ctx, tx, kind, r.RegisteredAt); err != nil {
		return r, err
	}
	var err error
	if r.SEQN, err = d.Store.NextSEQN(ctx, tx); err != nil {
		return r, err
	}
	if r.Body, err = d.text(r); err != nil {
		return r, err
	}
	if r.ID, err = d.Store.InsertRequest(ctx, tx, r, actor); err != nil {
		return r, err
	}
	return r, nil
}

// text is what goes into the mailbox: made now, whenever it gets there.
func (d *Desk) text(r request.Request) (string, error) {
	b, err := sis.EncodeRequest(sis.Request{
		SNDR: d.Site.SNDR, SEQN: r.SEQN, DTTM: r.RegisteredAt, Kind: r.Kind, From: r.Window.From, To: r.Window.To,
	}, d.Site.Zone)
	return string(b), err
}

// Ask registers a request in a transaction of its own and wakes who sends it.
func (d *Desk) Ask(ctx context.Context, kind message.Kind, window request.Window, actor string) (r request.Request, err error) {
	err = db.InTx(ctx, d.Pool, func(tx pgx.Tx) error {
		if r, err = d.Register(ctx, tx, kind, window, actor); err != nil {
			return err
		}
		return d.Waker.Wake(ctx, tx, jobs.RoleRequest)
	})
	if err != nil {
		return r, fault.Wrap(fault.Infra, "ask for "+string(kind), err)
	}
	d.Waker.Ring(jobs.RoleRequest)
	return r, nil
}

// look is the pause between looks at a request somebody waits for.
const look = 20 * time.Millisecond

// Sent waits until a request is in the mailbox and gives its COUTMSGS_ID. When patience is over, or the request has ended
// before, ok is false: it is then expired, unless it was sent in this very moment.
func (d *Desk) Sent(ctx context.Context, id int64, patience time.Duration) (mailboxID int64, ok bool, err error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for waiting := true; waiting; {
		state, mailboxID, err := d.Store.RequestState(ctx, d.Pool, id)
		if err != nil || mailboxID != 0 {
			return mailboxID, mailboxID != 0, err
		}
		if state == request.Expired { // not DONE: its answer was quicker than our note of the id, which is about to come
			return 0, false, nil
		}
		select {
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-over.C:
			waiting = false
		case <-tick.C:
		}
	}
	err = db.InTx(ctx, d.Pool, func(tx pgx.Tx) error {
		return d.Store.ExpireRequests(ctx, tx, []int64{id}, request.NotSent, d.Now(), request.Registered)
	})
	if err != nil {
		return 0, false, err
	}
	_, mailboxID, err = d.Store.RequestState(ctx, d.Pool, id)
	return mailboxID, mailboxID != 0, err
}
