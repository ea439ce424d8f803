//go:build demo

package cli

import (
	"context"
	"log/slog"
	"net"

	"msgexchange/deploy/config"
	embedded "msgexchange/deploy/demo"
	"msgexchange/deploy/observe"
	"msgexchange/jobs"
)

// Run runs the whole system until ctx ends or the duration is over.
func (d demo) Run(ctx context.Context, p *Process) error {
	return embedded.Run(ctx, embedded.Options{
		Duration: d.Duration, Rate: d.Rate, Flights: d.Flights, Seed: d.Seed, Ask: true, JSON: d.JSON,
		Out: p.Stdout, Err: p.Stderr, Terminal: isTerminal(p.Stderr),
		Serve: func(ctx context.Context, cfg config.Config, l net.Listener, log *slog.Logger) error {
			return runNode(ctx, running{config: cfg, build: observe.NewBuild(p.Version, p.Commit), log: log, duties: duties{roles: jobs.AllRoles(), maintain: true}, listener: l})
		},
	})
}
