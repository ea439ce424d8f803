package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"msgexchange/deploy/config"
	"msgexchange/deploy/observe"
	"msgexchange/jobs"
)

// serve runs what a pod runs.
type serve struct {
	configured
	Roles     []string      `help:"What this process does: all, or some of http, poll, head, deliver, backfill, request, maintenance." default:"all" placeholder:"ROLE,…"`
	UntilIdle time.Duration `help:"End once there was nothing left to do for so long; 0 means never." placeholder:"DURATION"`
}

// Help says what the command needs and how it ends.
func (serve) Help() string {
	return `Needs pg.dsn, mailbox.dsn and kafka.brokers, and a schema that "migrate up" has made.
Any number of processes may run at once; they share the work out among themselves, in strict order.

SIGTERM or SIGINT finishes what is in hand and ends with 0 within shutdown-grace.`
}

// Run works until ctx ends, or until idle when asked to.
func (s serve) Run(ctx context.Context, p *Process) error {
	does, err := parseRoles(s.Roles)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if s.UntilIdle < 0 {
		return &exitError{code: exitUsage, err: errors.New("--until-idle: less than 0")}
	}
	cfg, done, err := s.load(p)
	if done || err != nil {
		return err
	}
	spendMemory()
	log, sink := loggers(p, cfg)
	defer sink.end()
	var ln net.Listener
	if does.http {
		if ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.HTTP.Addr); err != nil {
			return fmt.Errorf("http.addr: %w", err)
		}
	}
	err = runNode(ctx, running{
		config: cfg, build: observe.NewBuild(p.Version, p.Commit), log: log, duties: does, listener: ln, untilIdle: s.UntilIdle, metrics: sink.metrics,
	})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // it was stopped while it started: nothing was in hand
	}
	return err
}

// running is one run of a process.
type running struct {
	config config.Config
	build  observe.Build
	log    *slog.Logger
	duties
	listener  net.Listener // nil: no HTTP
	untilIdle time.Duration
	metrics   []prometheus.Collector // of what the process has beside the node
}

// runNode works until ctx ends or nothing is left to do, and has closed the listener and everything else when it returns.
func runNode(ctx context.Context, r running) error {
	n, err := assemble(ctx, r.config, r.build, r.log)
	if err != nil {
		if r.listener != nil {
			_ = r.listener.Close()
		}
		return err
	}
	defer n.close()
	n.metrics.MustRegister(r.metrics...)
	pod, err := n.pod(r.roles, r.maintain)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return pod.Run(ctx) })
	if r.listener != nil {
		w, err := n.web(pod.Client())
		if err != nil {
			return err
		}
		if err := w.jobs.Start(ctx); err != nil {
			return fmt.Errorf("start River UI: %w", err)
		}
		g.Go(func() error { return w.health.Run(ctx) })
		g.Go(func() error { return w.server.Run(ctx, r.listener) })
		g.Go(func() error { n.register(ctx, r.listener.Addr(), w.health); return nil })
		r.log.InfoContext(ctx, "serving", "addr", r.listener.Addr().String(), "roles", r.roles, "pod", n.name)
	}
	if r.untilIdle > 0 {
		g.Go(func() error { defer stop(); return n.idle(ctx, r.untilIdle) })
	}
	err = g.Wait()
	r.log.InfoContext(ctx, "stopped", "pod", n.name)
	return err
}

// idleLook is how often an until-idle process looks whether something is left to do.
const idleLook = 100 * time.Millisecond

// idle returns once nothing was left to do for d: no message below the mailbox's highest id is open, no event, no mark
// and no request waits. What cannot be asked counts as something to do.
func (n *node) idle(ctx context.Context, d time.Duration) error {
	t := time.NewTicker(idleLook)
	defer t.Stop()
	for since := time.Now(); time.Since(since) < d; {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if n.busy(ctx) {
			since = time.Now()
		}
	}
	n.log.InfoContext(ctx, "nothing left to do", "for", d.String())
	return nil
}

func (n *node) busy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	in, found, err := n.store.Inbox(ctx, n.pool, n.config.Lane)
	if err != nil || !found {
		return true
	}
	extent, _, err := n.mailbox.Facts(ctx)
	if err != nil || extent.Max > in.Cursor.W {
		return true
	}
	for _, role := range []jobs.Role{jobs.RoleHead, jobs.RoleMsg, jobs.RoleSchd, jobs.RoleBackfill, jobs.RoleRequest} {
		if pending, err := n.roles[role].Pending(ctx, n.pool); err != nil || pending {
			return true
		}
	}
	return false
}
