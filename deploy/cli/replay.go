package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"time"

	"msgexchange/db"
	"msgexchange/db/mailbox"
	"msgexchange/db/store"
	"msgexchange/deploy/config"
	"msgexchange/http/ops"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers"
	"msgexchange/workers/drain"
)

// replay puts finished messages back into the line, as POST /ops/replay does; or dead events, or marks that were given up.
type replay struct {
	configured
	IDs    []int64 `name:"ids" help:"Messages by their ids." placeholder:"ID,…" xor:"what"`
	Class  string  `help:"Messages by the class of their failure, or its root class: CODEC_ERROR, UNSUPPORTED, INFRA or EXHAUSTED." placeholder:"CLASS" xor:"what"`
	Events []int64 `help:"Dead events by their ids, as POST /ops/events/replay." placeholder:"ID,…" xor:"what"`
	Target string  `help:"All dead events in work of a target: KAFKA:msg or KAFKA:schd." placeholder:"TARGET" xor:"what"`
	Marks  []int64 `help:"Processed marks that were given up, by the ids of their messages, as POST /ops/backfill/resume." placeholder:"ID,…" xor:"what"`
	From   moment  `help:"Only those received from then on, as 2026-11-30T08:00:00+08:00." placeholder:"TIME"`
	To     moment  `help:"Only those received before." placeholder:"TIME"`
	Reason string  `help:"Why, for the audit." required:"" placeholder:"TEXT"`
	DryRun bool    `help:"Show what would happen, and what each message could still change."`
	Force  bool    `help:"Also put back what was skipped though another body had reused its identity."`
}

// moment is a point in time on the command line.
type moment struct{ time.Time }

// UnmarshalText is kong's way in.
func (m *moment) UnmarshalText(text []byte) (err error) {
	if m.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		return fmt.Errorf("%q is no time like 2026-11-30T08:00:00+08:00", text)
	}
	return nil
}

// Help says what the command needs.
func (replay) Help() string {
	return `Needs pg.dsn, and mailbox.dsn for texts that are no longer kept here. Prints the answer of the order as JSON, as HTTP would give it.
Only messages that ended with CODEC_ERROR, UNSUPPORTED, INFRA or EXHAUSTED are put back; the others are told one by one.
Dead events go out late, on schd with the state of now. Ends with 1 when nothing was put back.`
}

// Run carries the order out.
func (r replay) Run(ctx context.Context, p *Process) error {
	cfg, done, err := r.load(p, "pg", "mailbox", "log")
	if done || err != nil {
		return err
	}
	zone, err := time.LoadLocation(cfg.OperationDay.Zone)
	if err != nil {
		return fmt.Errorf("operation-day.zone: %w", err)
	}
	pool, err := db.Open(ctx, cfg.PG)
	if err != nil {
		return err
	}
	defer pool.Close()
	boxZone, err := time.LoadLocation(cfg.Mailbox.Zone)
	if err != nil {
		return fmt.Errorf("mailbox.zone: %w", err)
	}
	box, err := mailbox.Open(mailbox.Config{DSN: cfg.Mailbox.DSN, Zone: boxZone, TableIn: cfg.Mailbox.TableIn, TableOut: cfg.Mailbox.TableOut})
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }()
	jobs, err := workers.NewInserter(pool, logger(p, cfg))
	if err != nil {
		return err
	}
	api := &ops.API{
		Pool: pool, Store: store.New(zone), Waker: drain.NewWaker(cfg.Lane, jobs), Now: time.Now, Replaying: replaying(cfg, zone, box),
	}
	answer, queued, err := r.carryOut(ctx, api)
	var refused *problem.Error
	if errors.As(err, &refused) && refused.Code == problem.BadRequest {
		return &exitError{code: exitUsage, err: errors.New(refused.Detail)}
	}
	if err != nil {
		return err
	}
	out := json.NewEncoder(p.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(answer); err != nil {
		return err
	}
	if !queued {
		return &exitError{code: exitFailed}
	}
	return nil
}

// carryOut gives the order that the flags mean; queued says that something was put back.
func (r replay) carryOut(ctx context.Context, api *ops.API) (answer any, queued bool, err error) {
	order := ops.Order{Reason: r.Reason, DryRun: r.DryRun}
	switch {
	case len(r.Events) > 0 || r.Target != "":
		done, err := api.ReplayEvents(ctx, operator(), ops.ReplayEventsOrder{Order: order, EventIDs: r.Events, Target: outbox.Target(r.Target)})
		return done, anyQueued(done.Items.Items, func(i ops.Item) ops.Item { return i }), err
	case len(r.Marks) > 0:
		done, err := api.Resume(ctx, operator(), ops.ResumeOrder{Order: order, IDs: r.Marks})
		return done, anyQueued(done.Items, func(i ops.Item) ops.Item { return i }), err
	}
	done, err := api.Replay(ctx, operator(), ops.ReplayOrder{
		Order: order, IDs: r.IDs, Class: fault.Class(r.Class), From: r.From.Time, To: r.To.Time, Force: r.Force,
	})
	return done, anyQueued(done.Items, func(i ops.ReplayItem) ops.Item { return i.Item }), err
}

func anyQueued[T any](items []T, item func(T) ops.Item) bool {
	return slices.ContainsFunc(items, func(i T) bool { return item(i).Result == ops.Queued })
}

// operator is who runs the command, as the audit names him.
func operator() ops.By {
	by := ops.By{Actor: "cli", Peer: "localhost"}
	if u, err := user.Current(); err == nil {
		by.Actor = "cli:" + u.Username
	}
	if host, err := os.Hostname(); err == nil {
		by.Peer = host
	}
	return by
}

func replaying(c config.Config, zone *time.Location, texts ops.Texts) ops.Replaying {
	return ops.Replaying{Texts: texts, Identity: c.Identity, Decode: decodeOptions(c, zone), Flight: flightOptions(c, zone)}
}
