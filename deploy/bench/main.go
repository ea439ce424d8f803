// Command bench measures what design section 11 asks for and prints it as ratios to what the machine itself does in the same
// run: the limits and the product take turns, and each number is the median of the rounds, so that a busy machine slows both.
// A goal that is missed is printed as missed and is no error, for a machine with other work misses some: only -strict ends
// with 3 then. What could not be measured ends with 1.
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
	var quick, strict bool
	var only string
	flag.BoolVar(&quick, "quick", false, "one short round each: does it run at all")
	flag.BoolVar(&strict, "strict", false, "end with 3 when a goal is missed")
	flag.BoolVar(&o.statements, "statements", false, "print at the end what each statement cost PostgreSQL")
	flag.StringVar(&only, "only", "", "names of measurements, by commas; empty: all")
	flag.StringVar(&o.program, "program", "", "a build of msgexchange; empty: one is made")
	flag.IntVar(&o.rounds, "rounds", 5, "how often the limits and the product take turns")
	flag.IntVar(&o.backlog, "backlog", 20_000, "messages of the backlog")
	flag.IntVar(&o.rows, "rows", 10_000_000, "finished rows of proc_state")
	flag.IntVar(&o.archived, "archived", 2_000_000, "finished messages that are archived")
	flag.IntVar(&o.flights, "flights", 5_000, "flights of the schedule")
	flag.IntVar(&o.events, "events", 100_000, "events of the backlog that is delivered")
	flag.DurationVar(&o.steady, "steady", 30*time.Second, "how long messages come at a steady rate")
	flag.Parse()
	if quick {
		o.rounds, o.backlog, o.rows, o.archived, o.events, o.steady = 1, 4_000, 200_000, 300_000, 20_000, 8*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	misses, err := run(ctx, o, strings.FieldsFunc(only, func(r rune) bool { return r == ',' }))
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case misses > 0 && strict:
		os.Exit(3)
	}
}

// options say how much is measured.
type options struct {
	rounds  int
	backlog int
	rows    int
	flights int
	// archived is how many finished messages the archive moves.
	archived int
	steady   time.Duration
	events   int
	program  string

	statements bool
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
		{"roles", roles},
		{"delivery", delivery},
		{"selection", selection},
		{"archive", archive},
	}
}

// run measures and prints. It gives the number of goals that were missed.
func run(ctx context.Context, o options, only []string) (misses int, err error) {
	b, err := open(ctx, o)
	defer func() { err = errors.Join(err, b.world.Close()) }()
	if err != nil {
		return 0, err
	}
	for _, m := range measurements() {
		if len(only) > 0 && !slices.Contains(only, m.name) {
			continue
		}
		b.say("%s …", m.name)
		if err := m.run(ctx, b); err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	misses = b.table.print(os.Stdout)
	if o.statements {
		return misses, b.printStatements(ctx, os.Stdout)
	}
	return misses, nil
}
