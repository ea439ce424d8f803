package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/mailbox"
	"msgexchange/deploy/config"
	"msgexchange/http/compat"
	"msgexchange/http/console"
	"msgexchange/http/flights"
	"msgexchange/http/health"
	"msgexchange/http/ops"
	"msgexchange/http/refdata"
	"msgexchange/http/server"
	"msgexchange/jobs/fault"
	"msgexchange/workers"
	"msgexchange/workers/poll"
)

// web is what this process answers by HTTP, and what it looks at for that.
type web struct {
	server *server.Server
	health *health.Cache
	jobs   starter
}

// starter is River UI's: it looks things up in the background.
type starter interface {
	Start(ctx context.Context) error
}

// web makes the HTTP part.
func (n *node) web(client *workers.Client) (*web, error) {
	w := &web{health: health.New(time.Now, n.probes()...)}
	operations := &ops.API{
		Pool: n.pool, Store: n.store, Waker: n.waker, Keeper: n.keeper, Now: time.Now,
		Lane:      poll.Reseeder{Lane: n.config.Lane, Store: n.store, Mailbox: n.mailbox, Server: n.mailbox, Now: time.Now},
		Asking:    ops.Asking{Requests: n.desk, Zone: n.zone, Shadow: !n.live()},
		Replaying: replaying(n.config, n.zone, n.mailbox), TextsKept: n.config.Raw.Retention,
	}
	page, err := console.New(console.Deps{
		Service: n.config.ServiceName, Version: n.build.Version, Report: w.health.Report, Summary: operations.Read, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	ui, err := console.NewJobs(client, server.JobsPrefix, workers.Quiet(n.log))
	if err != nil {
		return nil, err
	}
	w.jobs = ui
	w.server, err = server.New(n.config.HTTP, server.Deps{
		Log: n.log, Now: time.Now, Health: w.health, Console: page, Jobs: operations.AuditedJobs(ui), Metrics: n.metrics, Ops: operations,
		Syncer:  &compat.Syncer{Requests: n.desk, Zone: n.zone, Shadow: !n.live()},
		Flights: flights.New(n.pool, n.store, n.zone),
		Refdata: &refdata.API{Pool: n.pool, Store: n.store, Now: time.Now},
		Sender: &compat.Sender{
			Mailbox: letterbox{n.mailbox}, Inbox: counter{n, poll.Registrar{Lane: n.config.Lane, Store: n.store, Waker: n.waker, Now: time.Now}},
			Shadow: n.config.Mode == config.Shadow, Now: time.Now, Log: n.log,
		},
	})
	return w, err
}

// letterbox gives the compat endpoint the mailbox, in its words.
type letterbox struct{ mailbox *mailbox.Mailbox }

func (l letterbox) Insert(ctx context.Context, text string, receivedAt time.Time) (int64, error) {
	id, err := l.mailbox.Insert(ctx, text, receivedAt)
	if errors.Is(err, mailbox.ErrTooLarge) {
		return 0, compat.ErrTooLarge
	}
	return id, err
}

// counter makes a row of ours known at once; the poller would find it too.
type counter struct {
	node      *node
	registrar poll.Registrar
}

func (c counter) Register(ctx context.Context, id int64, text string, receivedAt time.Time) error {
	err := db.InTx(ctx, c.node.pool, func(tx pgx.Tx) error { return c.registrar.Register(ctx, tx, id, text, receivedAt) })
	if err == nil {
		c.registrar.Ring()
	}
	return err
}

// probes look at what the process depends on (contract §8.9). Without PostgreSQL it can do nothing; without the mailbox or
// Kafka it still answers queries and takes over later.
func (n *node) probes() []health.Probe {
	return []health.Probe{
		{Name: "postgres", Critical: true, Look: func(ctx context.Context) health.Check { return checked(n.pool.Ping(ctx)) }},
		{Name: "schema", Critical: true, Look: n.lookAtSchema},
		{Name: "mailbox", Look: func(ctx context.Context) health.Check { return checked(n.mailbox.Ping(ctx)) }},
		{Name: "kafka", Look: func(ctx context.Context) health.Check {
			return checked(errors.Join(n.msg.Check(ctx), n.schd.Check(ctx)))
		}},
		{Name: "lane", Look: n.lookAtLane},
	}
}

func (n *node) lookAtSchema(ctx context.Context) health.Check {
	ok, detail, err := db.SchemaCurrent(ctx, n.pool)
	if err != nil || ok {
		return checked(err)
	}
	return health.Failed(detail)
}

func (n *node) lookAtLane(ctx context.Context) health.Check {
	in, found, err := n.store.Inbox(ctx, n.pool, n.config.Lane)
	if err != nil {
		return checked(err)
	}
	if found && in.Stopped != "" {
		return health.Failed("the inbox is stopped: " + string(in.Stopped))
	}
	paused, err := workers.PausedQueues(ctx, n.jobs)
	if err == nil && len(paused) > 0 {
		return health.Failed("paused in River UI, resume it there: queue " + strings.Join(paused, ", "))
	}
	return checked(err)
}

func checked(err error) health.Check {
	if err != nil {
		return health.Failed(fault.Text(err))
	}
	return health.Fine()
}
