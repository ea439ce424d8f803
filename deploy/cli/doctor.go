package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/mailbox"
	"msgexchange/db/store"
	"msgexchange/deploy/config"
	"msgexchange/deploy/doctor"
	"msgexchange/workers/kafka"
)

// examine is the command doctor.
type examine struct {
	configured
	JSON bool `help:"Print the findings as JSON."`
}

// Help says what the command needs and how it ends.
func (examine) Help() string {
	return `Needs the configuration of serve. Asks each server as serve would, and changes nothing.
A line is ok, warn, FAIL (the process would wait for it to be mended) or REFUSE (serve would not start);
below it stands what to do. Ends with 1 when a line says FAIL or REFUSE.`
}

// askWithin bounds the questions to one system.
const askWithin = 15 * time.Second

// Run asks everything and prints the answers.
func (d examine) Run(ctx context.Context, p *Process) error {
	cfg, done, err := d.load(p)
	if done || err != nil {
		return err
	}
	subject, closeAll, err := newSubject(ctx, cfg)
	if err != nil {
		return err
	}
	defer closeAll()
	findings := doctor.Examine(ctx, subject.Sections(), false, askWithin)
	if d.JSON {
		err = json.NewEncoder(p.Stdout).Encode(findings)
	} else {
		err = doctor.Print(p.Stdout, findings)
	}
	if worst := doctor.Worst(findings); err == nil && (worst == doctor.Fail || worst == doctor.Refuse) {
		return &exitError{code: exitFailed}
	}
	return err
}

// newSubject opens what can be opened, with nothing recorded and no topic made.
func newSubject(ctx context.Context, cfg config.Config) (_ doctor.Subject, closeAll func(), _ error) {
	pg := cfg.PG
	pg.ApplicationName = "msgexchange/doctor"
	dial, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s := doctor.Subject{Config: cfg, Now: time.Now, Topics: map[string]doctor.Topic{}}
	s.Pool, s.PoolErr = db.Open(dial, pg)
	s.Lane = laneOf(cfg, s.Pool, slog.New(slog.DiscardHandler))
	s.Lane.LookOnly = true
	var err error
	if s.Mailbox, err = openMailbox(cfg.Mailbox, s.Lane.Recognise); err != nil {
		return s, nil, err
	}
	closers := []func(){func() { _ = s.Mailbox.Close() }}
	if s.Pool != nil {
		closers = append(closers, func() { within(closeTimeout, s.Pool.Close) })
	}
	brokers := cfg.Kafka
	brokers.CreateTopics = false
	for _, topic := range []string{brokers.MsgTopic(), brokers.SchdTopic()} {
		producer, err := kafka.New(brokers, topic, slog.New(slog.DiscardHandler))
		if err != nil {
			return s, nil, err
		}
		s.Topics[topic] = producer
		closers = append(closers, func() { closeProducer(producer) })
	}
	return s, func() {
		for _, c := range closers {
			c()
		}
	}, nil
}

// laneOf keeps the configured lane at home.
func laneOf(cfg config.Config, pool *pgxpool.Pool, log *slog.Logger) doctor.Lane {
	return doctor.Lane{
		Name: cfg.Lane, Mode: string(cfg.Mode), Expect: mailbox.Identity(cfg.Mailbox.Identity),
		Topics: cfg.Kafka.Topics(), RenamedFrom: cfg.Kafka.RenamedFrom,
		Pool: pool, Store: store.New(time.UTC), Log: log, Now: time.Now,
	}
}

// openMailbox prepares the pool of the configured mailbox.
func openMailbox(c config.Mailbox, recognise mailbox.Recognise) (*mailbox.Mailbox, error) {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return nil, fmt.Errorf("mailbox.zone: %w", err)
	}
	return mailbox.Open(mailbox.Config{DSN: c.DSN, Zone: zone, TableIn: c.TableIn, TableOut: c.TableOut, Recognise: recognise})
}

// preflightWithin bounds what a start waits for an answer; what does not answer is waited for later.
const preflightWithin = 4 * time.Second

// preflight refuses a start that would do harm, and says what else is wrong (contract §8.9).
func (n *node) preflight(ctx context.Context) error {
	s := doctor.Subject{
		Config: n.config, Pool: n.pool, Mailbox: n.mailbox, Lane: laneOf(n.config, n.pool, n.log), Now: time.Now,
		Topics: map[string]doctor.Topic{n.config.Kafka.MsgTopic(): n.msg, n.config.Kafka.SchdTopic(): n.schd},
	}
	var refused []error
	for _, f := range doctor.Examine(ctx, s.Sections(), true, preflightWithin) {
		switch f.Verdict {
		case doctor.Refuse:
			refused = append(refused, fmt.Errorf("%s: %s: %s", f.Check, f.Found, f.Do))
		case doctor.Fail, doctor.Warn:
			n.log.WarnContext(ctx, "preflight finding", "check", f.Check, "found", f.Found, "do", f.Do)
		case doctor.OK, doctor.Skipped:
		}
	}
	return errors.Join(refused...)
}
