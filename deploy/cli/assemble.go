package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/IBM/pgxpoolprometheus"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"msgexchange/db"
	"msgexchange/db/mailbox"
	"msgexchange/db/store"
	"msgexchange/deploy/config"
	"msgexchange/deploy/observe"
	"msgexchange/jobs"
	jobsbackfill "msgexchange/jobs/backfill"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
	"msgexchange/workers"
	"msgexchange/workers/backfill"
	"msgexchange/workers/deliver"
	"msgexchange/workers/drain"
	"msgexchange/workers/head"
	"msgexchange/workers/kafka"
	"msgexchange/workers/maintenance"
	"msgexchange/workers/poll"
	"msgexchange/workers/request"
)

// node is everything one process is made of. It is built once, from the outside in, and closed in the other order.
type node struct {
	name    string
	config  config.Config
	build   observe.Build
	log     *slog.Logger
	zone    *time.Location
	metrics *prometheus.Registry

	pool    *pgxpool.Pool
	store   *store.Store
	mailbox *mailbox.Mailbox
	msg     *kafka.Producer
	schd    *kafka.Producer
	waker   *drain.Waker
	roles   map[jobs.Role]drain.Role
	jobs    *workers.Client // inserts only
	keeper  *maintenance.Keeper
	desk    *request.Desk

	closers []func()
}

// assemble connects to our own PostgreSQL, which must be there and current, and prepares the rest, which may come later.
func assemble(ctx context.Context, cfg config.Config, build observe.Build, log *slog.Logger) (*node, error) {
	n := &node{name: newPodName(), config: cfg, build: build, log: log, metrics: observe.NewRegistry(build)}
	for _, open := range []func(context.Context) error{n.openZone, n.openPostgres, n.openMailbox, n.openKafka, n.preflight, n.makeRoles, n.makeKeeper} {
		if err := open(ctx); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
}

func (n *node) openZone(context.Context) (err error) {
	if n.zone, err = time.LoadLocation(n.config.OperationDay.Zone); err != nil {
		return fmt.Errorf("operation-day.zone: %w", err)
	}
	n.store = store.New(n.zone)
	return nil
}

func (n *node) close() {
	for _, c := range slices.Backward(n.closers) {
		c()
	}
}

func (n *node) openPostgres(ctx context.Context) error {
	cfg := n.config.PG
	cfg.ApplicationName = "msgexchange/serve/" + n.name
	pool, err := db.Open(ctx, cfg)
	if err != nil {
		return err
	}
	n.pool = pool
	n.closers = append(n.closers, func() { within(closeTimeout, pool.Close) })
	n.metrics.MustRegister(pgxpoolprometheus.NewCollector(pool, nil))
	if _, err := db.CheckServer(ctx, pool); err != nil {
		return err
	}
	ok, detail, err := db.SchemaCurrent(ctx, pool)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the schema is not current: %s", detail)
	}
	lane := laneOf(n.config, pool, n.log)
	if err := lane.ClaimMode(ctx); err != nil {
		return err
	}
	if err := lane.ClaimTopics(ctx); err != nil {
		return err
	}
	if n.jobs, err = workers.NewInserter(pool, n.log); err != nil {
		return err
	}
	n.waker = drain.NewWaker(n.config.Lane, n.jobs)
	return nil
}

func (n *node) openMailbox(context.Context) error {
	var err error
	if n.mailbox, err = openMailbox(n.config.Mailbox, laneOf(n.config, n.pool, n.log).Recognise); err != nil {
		return err
	}
	n.closers = append(n.closers, func() { _ = n.mailbox.Close() })
	n.metrics.MustRegister(collectors.NewDBStatsCollector(n.mailbox.DB(), "mailbox"))
	return nil
}

func (n *node) openKafka(context.Context) error {
	c := n.config.Kafka
	for _, t := range []struct {
		topic string
		into  **kafka.Producer
	}{{c.MsgTopic(), &n.msg}, {c.SchdTopic(), &n.schd}} {
		p, err := kafka.New(c, t.topic, n.log)
		if err != nil {
			return err
		}
		*t.into = p
		n.closers = append(n.closers, func() { closeProducer(p) })
	}
	return nil
}

// closeProducer does not wait for brokers that hang.
func closeProducer(p *kafka.Producer) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = p.Close(ctx)
}

// makeRoles puts the roles together. All of them, whatever this pod works: its watcher asks each what is pending.
func (n *node) makeRoles(context.Context) error {
	delivery, err := deliver.NewMetrics(n.metrics)
	if err != nil {
		return err
	}
	n.metrics.MustRegister(deliver.NewBacklog(n.store, n.pool, time.Now))
	sending := func(p *kafka.Producer) deliver.Deps {
		return deliver.Deps{Pool: n.pool, Store: n.store, Kafka: p, Metrics: delivery, Log: n.log, Now: time.Now}
	}
	n.roles = map[jobs.Role]drain.Role{
		jobs.RolePoll:     n.poller(),
		jobs.RoleHead:     n.header(),
		jobs.RoleMsg:      deliver.NewMsg(deliver.Config{Batch: n.config.Delivery.Batch}, sending(n.msg)),
		jobs.RoleSchd:     deliver.NewSchd(deliver.SchdConfig{FlushPeriod: n.config.Schd.FlushPeriod, FlushLimit: n.config.Schd.FlushLimit}, sending(n.schd)),
		jobs.RoleBackfill: n.backfiller(),
		jobs.RoleRequest:  n.requester(),
	}
	return nil
}

func (n *node) poller() *poll.Poll {
	p := n.config.Pipeline
	var prober poll.Prober
	if p.HoleProbe {
		prober = n.mailbox
	}
	return poll.New(poll.Config{
		Lane: n.config.Lane, Pace: inbox.Pace{Busy: p.BusyInterval, Idle: p.PollInterval}, Batch: p.ClaimBatch,
		MaxCommitDelay: inbox.CommitDelay(p.MaxCommitDelay), Late: inbox.Policy(p.Late), LateDetectPeriod: p.LateDetectPeriod,
		Cutover: inbox.Cutover(p.CutoverWatermark),
	}, poll.Deps{
		Pool: n.pool, Store: n.store, Mailbox: n.mailbox, Server: n.mailbox, Prober: prober, Waker: n.waker,
		Metrics: poll.NewMetrics(n.metrics, n.pool, n.store, n.config.Lane), Log: n.log, Now: time.Now,
	})
}

func (n *node) header() *head.Head {
	n.metrics.MustRegister(head.NewBacklog(n.config.Lane, n.pool, n.store, time.Now))
	c := n.config
	return head.New(head.Config{
		Lane: c.Lane, Batch: c.Pipeline.HeadBatch, Marks: n.live(), Shadow: !n.live(), Retry: c.Pipeline.Policy, Identity: c.Identity,
		Decode: decodeOptions(c, n.zone), Flight: flightOptions(c, n.zone),
		MsgKey: outbox.MsgKey(c.Kafka.MsgKey),
	}, head.Deps{
		Pool: n.pool, Store: n.store, Mailbox: n.mailbox, Waker: n.waker, Metrics: head.NewMetrics(n.metrics), Log: n.log, Now: time.Now,
	})
}

func decodeOptions(c config.Config, zone *time.Location) sis.Options {
	return sis.Options{Zone: zone, Ignore: c.Ignore.Rules}
}

func flightOptions(c config.Config, zone *time.Location) flight.Options {
	return flight.Options{Zone: zone, CutoffHour: c.OperationDay.CutoffHour, DetachOnMasterDelete: c.Flight.FDELMaster == "detach"}
}

func (n *node) backfiller() *backfill.Backfill {
	backfill.NewMetrics(n.metrics, n.pool, n.store)
	c, values := n.config, map[jobsbackfill.Outcome]string{}
	for outcome, status := range c.Mailbox.StatusMap {
		values[jobsbackfill.Outcome(outcome)] = status
	}
	return backfill.New(backfill.Config{
		Batch:  c.Backfill.Batch,
		Policy: jobsbackfill.Policy{MaxAttempts: c.Backfill.MaxAttempts, Overdue: c.Backfill.Overdue},
		Values: jobsbackfill.Values{Processed: c.Mailbox.ProcessedValue, ByOutcome: values},
	}, backfill.Deps{Pool: n.pool, Store: n.store, Mailbox: n.mailbox, Log: n.log, Now: time.Now})
}

// live says that this process may write to the mailbox.
func (n *node) live() bool { return n.config.Mode == config.Live }

// needs are the neighbours of the roles. A text is read from the mailbox again only when our copy is gone.
func (n *node) needs() map[jobs.Role]drain.Needs {
	mailbox := drain.Needs{Name: "mailbox", Reach: n.mailbox.Ping}
	seldom := mailbox
	seldom.Seldom = true
	return map[jobs.Role]drain.Needs{
		jobs.RolePoll: mailbox, jobs.RoleHead: seldom, jobs.RoleBackfill: mailbox, jobs.RoleRequest: mailbox,
		jobs.RoleMsg:  {Name: "kafka", Reach: n.msg.Check},
		jobs.RoleSchd: {Name: "kafka", Reach: n.schd.Check},
	}
}

// pod makes the part that works.
func (n *node) pod(roles []jobs.Role, maintain bool) (*workers.Pod, error) {
	return workers.New(workers.Deps{
		Name: n.name, Lane: n.config.Lane, Pool: n.pool, Waker: n.waker, Work: n.roles, Roles: roles, Needs: n.needs(),
		Keeper: n.keeper, Maintain: maintain,
		Drain: drain.Defaults(), Grace: softGrace(n.config.ShutdownGrace), Log: n.log,
	})
}

// The end of a process whose databases hang: the drains are asked for most of the grace, then cut off, and connections that
// do not close are left to the operating system, so that all is over within the grace (contract §8.5).
const (
	stopReserve  = 8 * time.Second
	closeTimeout = 2 * time.Second
)

// softGrace is the part of the grace in which drains may finish what they have in hand.
func softGrace(grace time.Duration) time.Duration { return max(grace-stopReserve, grace/2) }

// within waits for f, but no longer than d.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// newPodName is unique: host, process id, and a random part, for in containers every process is number 1.
func newPodName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

// duties are what a process does.
type duties struct {
	roles    []jobs.Role
	http     bool
	maintain bool // the work that the clock asks for
}

// parseRoles turns the names of the command line into duties.
func parseRoles(names []string) (d duties, err error) {
	byName := map[string][]jobs.Role{
		"all": jobs.AllRoles(), "http": nil, "poll": {jobs.RolePoll}, "head": {jobs.RoleHead}, "deliver": {jobs.RoleMsg, jobs.RoleSchd},
		"backfill": {jobs.RoleBackfill}, "request": {jobs.RoleRequest}, "maintenance": nil,
	}
	var errs []error
	for _, name := range names {
		more, known := byName[strings.TrimSpace(name)]
		if !known {
			errs = append(errs, fmt.Errorf("--roles: there is no role %q", name))
		}
		d.http = d.http || name == "all" || name == "http"
		d.maintain = d.maintain || name == "all" || name == "maintenance"
		for _, r := range more {
			if !slices.Contains(d.roles, r) {
				d.roles = append(d.roles, r)
			}
		}
	}
	return d, errors.Join(errs...)
}
