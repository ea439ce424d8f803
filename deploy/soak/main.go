// Command soak runs the system for a while under everything that goes wrong at once, then checks every record (design §3,
// "soak"; style §6): a simulated airport with faults of its own, three pods that are killed, stopped and cut off at random,
// servers that crash. At the end everything heals and drains, and an auditor that shares only the pure core with the
// workers rebuilds from the mailbox what must be in the tables and the topics. It ends with 1 when a single record differs.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.DurationVar(&o.Duration, "duration", 5*time.Minute, "how long things go wrong")
	flag.Uint64Var(&o.Seed, "seed", 0, "where the random numbers begin; 0 chooses one")
	flag.Float64Var(&o.Rate, "rate", 40, "messages a second")
	flag.IntVar(&o.Flights, "flights", 200, "flights of the day")
	flag.IntVar(&o.Pods, "pods", 3, "processes")
	flag.DurationVar(&o.Settle, "settle", 3*time.Minute, "how long everything may take to drain once it has healed")
	flag.StringVar(&o.Logs, "logs", "", "folder for the pods' logs; empty: they are shown only when something is wrong")
	flag.StringVar(&o.Program, "program", "", "a build of msgexchange with the tag faults; empty: one is made")
	flag.Parse()
	if o.Seed == 0 {
		o.Seed = 1 + rand.Uint64N(1_000_000)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	report, err := soak(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	if !report.print(os.Stdout, o) {
		os.Exit(1)
	}
}
