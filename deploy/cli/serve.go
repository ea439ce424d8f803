package cli

import (
	"context"
	"errors"
	"time"
)

// serve runs what a pod runs.
type serve struct {
	configured
	Roles     []string      `help:"What this process does: all, or some of http, poll, head, deliver, backfill, request, maintenance." default:"all" enum:"all,http,poll,head,deliver,backfill,request,maintenance" placeholder:"ROLE,…"`
	UntilIdle time.Duration `help:"End once there was nothing left to do for so long; 0 means never." placeholder:"DURATION"`
}

// Help says what the command needs and how it ends.
func (serve) Help() string {
	return `Needs pg.dsn, mailbox.dsn and kafka.brokers, and a schema that "migrate up" has made.
Any number of processes may run at once; they share the work out among themselves, in strict order.

SIGTERM or SIGINT finishes what is in hand and ends with 0 within shutdown-grace.`
}

// Run works until ctx ends, or until idle when asked to.
func (s serve) Run(_ context.Context, p *Process) error {
	if _, done, err := s.load(p); done || err != nil {
		return err
	}
	return errors.New("serve: not wired")
}
