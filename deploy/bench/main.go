// Command bench measures what design section 11 asks for and prints it as ratios to what the machine itself does in the same
// run: the limits and the product take turns, and each number is the median of the rounds, so that a busy machine slows both.
// It judges nothing in CI: a goal that is missed is printed as missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	var quick bool
	var only string
	flag.BoolVar(&quick, "quick", false, "one short round each: does it run at all")
	flag.StringVar(&only, "only", "", "names of measurements, by commas; empty: all")
	flag.StringVar(&o.program, "program", "", "a build of msgexchange; empty: one is made")
	flag.IntVar(&o.rounds, "rounds", 5, "how often the limits and the product take turns")
	flag.IntVar(&o.backlog, "backlog", 20_000, "messages of the backlog")
	flag.IntVar(&o.rows, "rows", 10_000_000, "finished rows of proc_state")
	flag.IntVar(&o.flights, "flights", 5_000, "flights of the schedule")
	flag.DurationVar(&o.steady, "steady", 30*time.Second, "how long messages come at a steady rate")
	flag.Parse()
	if quick {
		o.rounds, o.backlog, o.rows, o.steady = 1, 4_000, 200_000, 8*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, strings.FieldsFunc(only, func(r rune) bool { return r == ',' }))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options say how much is measured.
type options struct {
	rounds  int
	backlog int
	rows    int
	flights int
	steady  time.Duration
	program string
}

// measurement is one part of the table; it starts from whatever the parts before it left.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

// measurements in the order in which they run: those that want a small system come first.
func measurements() []measurement {
	return []measurement{
		{"schedule", schedule},
		{"latency", latency},
		{"idle", idle},
		{"drain", drain},
		{"selection", selection},
	}
}

func run(ctx context.Context, o options, only []string) (err error) {
	b, err := open(ctx, o)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return err
	}
	for _, m := range measurements() {
		if len(only) > 0 && !slices.Contains(only, m.name) {
			continue
		}
		b.say("%s …", m.name)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.table.print(os.Stdout)
	return nil
}
