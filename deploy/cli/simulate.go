package cli

import (
	"context"
	"errors"
	"time"
)

// simulate writes into the mailbox of the configuration.
type simulate struct {
	configured
	Count    int           `help:"End after so many messages." placeholder:"N" xor:"end" required:""`
	Duration time.Duration `help:"End after so long." placeholder:"DURATION" xor:"end" required:""`
	traffic
	Fault []string `help:"What goes wrong on purpose: holes, dup, late, malformed." enum:"holes,dup,late,malformed" placeholder:"FAULT,…"`
}

// traffic is how the simulated airport behaves; the same seed gives the same messages.
type traffic struct {
	Rate    float64 `help:"Messages a second; 0 means as fast as possible." default:"20" placeholder:"N"`
	Flights int     `help:"Flights of the day." default:"300" placeholder:"N"`
	Seed    uint64  `help:"Where the random numbers begin." default:"1" placeholder:"N"`
}

// Help says what the command needs.
func (simulate) Help() string {
	return `Needs mailbox.dsn with the right to INSERT. Writes to the mailbox and nowhere else: point it at a test system.
The same --seed writes the same messages.`
}

// Run writes until the count, the duration or ctx ends.
func (s simulate) Run(_ context.Context, p *Process) error {
	if _, done, err := s.load(p, "mailbox", "operation-day"); done || err != nil {
		return err
	}
	return errors.New("simulate: not wired")
}
