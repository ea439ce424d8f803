package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"msgexchange/deploy/simulator"
	"msgexchange/deploy/systemtest/rig"
)

// options of one run. The same seed plans the same messages and the same faults; when they hit is up to the machine.
type options struct {
	Duration time.Duration
	Settle   time.Duration
	Seed     uint64
	Rate     float64
	Flights  int
	Pods     int
	Logs     string
	Program  string
}

// report is what a run found.
type report struct {
	counts   map[string]int // what was compared, for people
	faults   map[string]int // what was done to the system
	problems []string       // every one is a defect
	logs     string         // of the pods, newest part
}

// soak runs everything once. Its error says why it could not be judged.
func soak(ctx context.Context, o options, out io.Writer) (_ *report, err error) {
	w, err := rig.NewWorld(ctx, rig.Needs{Partitions: partitions, Program: o.Program})
	defer func() { err = errors.Join(err, w.Close()) }()
	if err != nil {
		return nil, err
	}
	return run(ctx, w, o, teller(out))
}

// partitions of each topic.
const partitions = 3

// run works the world over and audits it.
func run(ctx context.Context, w *rig.World, o options, say func(string, ...any)) (*report, error) {
	say("seed %d: %s of faults, %d pods, %g messages a second", o.Seed, o.Duration, o.Pods, o.Rate)
	c, err := hire(ctx, w, o, say)
	if err != nil {
		return nil, err
	}
	defer c.dismiss()
	faults, err := trouble(ctx, w, c, o, say)
	if err != nil {
		return nil, err
	}
	say("healed; draining")
	r := &report{faults: faults}
	if err := settle(ctx, w, o.Settle); err != nil {
		r.problems = append(r.problems, fmt.Sprintf("not drained within %s: %v", o.Settle, err))
	}
	c.retire()
	r.problems = append(r.problems, c.problems()...)
	r.logs = c.logs()
	say("auditing")
	return r, audit(ctx, w, r)
}

// trouble lets messages in and faults loose until the time is over, and heals everything.
func trouble(ctx context.Context, w *rig.World, c *crew, o options, say func(string, ...any)) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return write(ctx, w, o) })
	tally := &tally{n: map[string]int{}}
	for i, all := range [][]mishap{podMishaps(c), serverMishaps(w)} {
		rnd := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		g.Go(func() error { return loose(ctx, rnd, all, tally, say) })
	}
	return tally.n, g.Wait()
}

// write plays the airport into the mailbox. What a crash of the mailbox leaves unknown is tried again: a row twice, or one
// that never comes, is what mailboxes have.
func write(ctx context.Context, w *rig.World, o options) error {
	stream, err := simulator.New(simulator.Options{Seed: o.Seed, Flights: o.Flights, Day: time.Now(), Zone: w.Zone})
	if err != nil {
		return err
	}
	writer := simulator.Writer{
		Stream: stream, Mailbox: stubborn{ctx, simulator.NewTable(w.Mailbox.DB(), "cminmsgs", w.Zone)},
		Rate: o.Rate, For: o.Duration, Faults: simulator.AllFaults(),
	}
	_, err = writer.Run(ctx)
	return err
}

// settle waits until every row of the mailbox is finished and marked and every event is sent.
func settle(ctx context.Context, w *rig.World, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	const open = `SELECT
		(SELECT count(*) FROM proc_state), (SELECT count(*) FROM proc_state WHERE finished_at IS NULL OR backfill_next_at IS NOT NULL),
		(SELECT count(*) FROM msg_event WHERE state = 'PENDING') + (SELECT count(*) FROM event_span WHERE state = 'PENDING')`
	for {
		var rows, taken, unfinished, unsent int
		err := errors.Join(
			w.Mailbox.DB().QueryRowContext(ctx, "SELECT count(*) FROM cminmsgs").Scan(&rows),
			w.Pool.QueryRow(ctx, open).Scan(&taken, &unfinished, &unsent))
		if err == nil && rows == taken && unfinished == 0 && unsent == 0 {
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("%d rows in the mailbox, %d taken over, %d of them unfinished or unmarked, %d events unsent: %w", rows, taken, unfinished, unsent, errors.Join(err, ctx.Err()))
		}
	}
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// teller prints lines with the time since the start.
func teller(out io.Writer) func(string, ...any) {
	var mu sync.Mutex
	start := time.Now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%7.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}
