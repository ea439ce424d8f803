package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"msgexchange/db/mailbox"
	"msgexchange/deploy/config"
	"msgexchange/deploy/simulator"
	"msgexchange/workers/kafka"
)

// simulate writes into the mailbox of the configuration.
type simulate struct {
	configured
	Count    int           `help:"End after so many messages." placeholder:"N"`
	Duration time.Duration `help:"End after so long." placeholder:"DURATION"`
	traffic
	Answer bool     `help:"Take the requests in COUTMSGS and answer them too: some twice, late or never. Needs the right to SELECT and UPDATE there."`
	Fault  []string `help:"What goes wrong on purpose: holes, dup, late, malformed; or one incident of the runbook, see below." placeholder:"FAULT,…"`
}

// Validate finds arguments that do not go together (kong calls it).
func (s simulate) Validate() error {
	faults, incidents := s.faults()
	known := len(faults) + len(incidents)
	switch {
	case known < len(s.Fault):
		return fmt.Errorf("--fault: %q: want some of %v, or one of %v", s.Fault, simulator.AllFaults(), simulator.AllIncidents())
	case len(incidents) > 0 && known > 1:
		return errors.New("--fault: an incident stands alone")
	case len(incidents) > 0 && s.Answer:
		return errors.New("--answer: not with an incident")
	case len(incidents) == 0 && (s.Count == 0) == (s.Duration == 0):
		return errors.New("either --count or --duration is required")
	}
	return nil
}

// faults tells the stream's faults and the incidents among the arguments.
func (s simulate) faults() (faults []simulator.Fault, incidents []simulator.Incident) {
	for _, word := range s.Fault {
		if f := simulator.Fault(word); slices.Contains(simulator.AllFaults(), f) {
			faults = append(faults, f)
		}
		if i := simulator.Incident(word); slices.Contains(simulator.AllIncidents(), i) {
			incidents = append(incidents, i)
		}
	}
	return faults, incidents
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
The same --seed writes the same messages; on one day they are the same to the byte.

Incidents, to practise docs/runbook.md with: poison, dead-event, stuck-head, unmarked, hole, late-row, expired-request,
stale-list. One happens, and is ended as the outside would end it, at Ctrl-C or after --duration. --count is how many messages
are poison or stuck. dead-event raises max.message.bytes of the topics at its end when kafka.brokers is set.`
}

// Run writes until the count, the duration or ctx ends.
func (s simulate) Run(ctx context.Context, p *Process) error {
	faults, incidents := s.faults()
	uses := []string{"mailbox", "operation-day"}
	if slices.Contains(incidents, simulator.LateRow) {
		uses = append(uses, "pipeline")
	}
	cfg, done, err := s.load(p, uses...)
	if done || err != nil {
		return err
	}
	airport, err := time.LoadLocation(cfg.OperationDay.Zone)
	if err != nil {
		return fmt.Errorf("operation-day.zone: %w", err)
	}
	zone, err := time.LoadLocation(cfg.Mailbox.Zone)
	if err != nil {
		return fmt.Errorf("mailbox.zone: %w", err)
	}
	box, err := openMailbox(cfg.Mailbox, nil)
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }()
	table, err := box.TableIn(ctx)
	if err != nil {
		return err
	}
	if len(incidents) > 0 {
		return s.drill(ctx, cfg, simulator.Drill{
			DB: box.DB(), Table: table, Zone: zone, Rows: s.Count, Lasts: s.Duration, Say: func(line string) { _, _ = fmt.Fprintln(p.Stdout, line) },
			Airport: simulator.Options{Seed: s.Seed + drillDigit, Flights: s.Flights, Day: time.Now().In(airport), Zone: airport},
		}, incidents[0])
	}
	stream, err := simulator.New(simulator.Options{Seed: s.Seed, Flights: s.Flights, Day: time.Now().In(airport), Zone: airport})
	if err != nil {
		return err
	}
	w := simulator.Writer{
		Stream: stream, Mailbox: simulator.NewTable(box.DB(), table, zone),
		Rate: s.Rate, Count: s.Count, For: s.Duration, Faults: faults, Progress: progress(p.Stderr),
	}
	counts, replies, err := s.write(ctx, &w, box, zone, airport)
	report(p.Stdout, counts)
	if s.Answer {
		_, _ = fmt.Fprintf(p.Stdout, "%d requests taken, %d answers\n", replies.Requests, replies.Answers)
	}
	return err
}

// drillDigit keeps the flights of drills apart from those of the stream and of the answers.
const drillDigit = 3

// drill lets one incident happen.
func (s simulate) drill(ctx context.Context, cfg config.Config, d simulator.Drill, i simulator.Incident) error {
	if i == simulator.LateRow && d.Lasts == 0 {
		const more = 3 * time.Second
		d.Lasts = cfg.Pipeline.MaxCommitDelay + more
	}
	if len(cfg.Kafka.Brokers) > 0 {
		d.Raise = func(ctx context.Context) error {
			const enough = 10 << 20
			return errors.Join(kafka.Allow(ctx, cfg.Kafka, cfg.Kafka.MsgTopic(), enough), kafka.Allow(ctx, cfg.Kafka, cfg.Kafka.SchdTopic(), enough))
		}
	}
	return d.Run(ctx, i)
}

// When answers come, measured by the default timeouts of requests.
const (
	answerAfter = 2 * time.Second
	answerLate  = 70 * time.Second
)

// write runs the stream, and the answers beside it when they are wanted. What is owed when the stream ends is still given.
func (s simulate) write(
	ctx context.Context, w *simulator.Writer, box *mailbox.Mailbox, zone, airport *time.Location,
) (counts simulator.Counts, replies simulator.Replies, err error) {
	if !s.Answer {
		counts, err = w.Run(ctx)
		return counts, replies, err
	}
	out, err := box.TableOut(ctx)
	if err != nil {
		return counts, replies, err
	}
	const otherDigit = 5 // the answers have flights of their own
	responder := simulator.Responder{
		Outbox: simulator.NewRequests(box.DB(), out, zone), Mailbox: w.Mailbox, Delay: answerAfter, LateDelay: answerLate,
		Airport: simulator.Options{Seed: s.Seed + otherDigit, Flights: s.Flights, Day: time.Now().In(airport), Zone: airport},
	}
	answering, end := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() (err error) { replies, err = responder.Run(answering); return err })
	counts, err = w.Run(ctx)
	end()
	return counts, replies, errors.Join(err, g.Wait())
}

// progress writes one line over and over on a person's screen, and nothing elsewhere.
func progress(w io.Writer) func(simulator.Counts) {
	if !isTerminal(w) {
		return nil
	}
	var last time.Time
	return func(c simulator.Counts) {
		if time.Since(last) > 200*time.Millisecond {
			last = time.Now()
			_, _ = fmt.Fprintf(w, "\r%d messages, %d rows", c.Messages, c.Rows)
		}
	}
}

// report says what was written.
func report(w io.Writer, c simulator.Counts) {
	_, _ = fmt.Fprintf(w, "%d messages, %d rows; %d holes, %d duplicates, %d late, %d malformed\n",
		c.Messages, c.Rows, c.Holes, c.Duplicates, c.Late, c.Malformed)
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		_, _ = fmt.Fprintf(w, "  %-10s %d\n", kind, c.Kinds[kind])
	}
}

// isTerminal says that w is a person's screen, where a line may be written over.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
