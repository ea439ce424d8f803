package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"msgexchange/db"
	"msgexchange/db/dbserver"
	"msgexchange/db/mailbox"
)

// Needs say what a World is made of.
type Needs struct {
	PG, MariaDB dbserver.Options
	Partitions  int32    // of each topic
	Topics      []string // beside msg and schd
	Program     string   // path of a build with the tag faults; empty: one is made
}

// World is servers of one's own and the program to run on them: a migrated PostgreSQL, a MariaDB with an empty mailbox, and
// a broker.
type World struct {
	PG, MariaDB       *dbserver.Server
	PGDSN, MailboxDSN string
	Broker            *Broker
	Program           string

	// The ways of an onlooker, past every door.
	Pool    *pgxpool.Pool
	Mailbox *mailbox.Mailbox
	Zone    *time.Location // of the mailbox and the airport

	dir string
}

// NewWorld starts everything and builds the program. Close it also after an error.
func NewWorld(ctx context.Context, n Needs) (w *World, err error) {
	w = &World{}
	if w.dir, err = os.MkdirTemp("", "msgexchange-world-"); err != nil {
		return w, err
	}
	var g errgroup.Group
	g.Go(func() (err error) { w.PG, err = dbserver.StartPostgres(ctx, n.PG); return err })
	g.Go(func() (err error) { w.MariaDB, err = dbserver.StartMariaDB(ctx, n.MariaDB); return err })
	g.Go(func() (err error) {
		if w.Program = n.Program; w.Program == "" {
			w.Program, err = Build(ctx, w.dir)
		}
		return err
	})
	g.Go(func() (err error) { w.Broker, err = OpenBroker(n.Partitions, n.Topics...); return err })
	if err := g.Wait(); err != nil {
		return w, err
	}
	return w, w.furnish(ctx)
}

func (w *World) furnish(ctx context.Context) (err error) {
	w.PGDSN = w.PG.DSN
	if err := db.Migrate(ctx, w.PGDSN, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if w.MailboxDSN, err = dbserver.MakeMailbox(ctx, w.MariaDB.DSN, "mailbox"); err != nil {
		return err
	}
	if w.Pool, err = pgxpool.New(ctx, w.PGDSN); err != nil {
		return err
	}
	if w.Zone, err = time.LoadLocation("Asia/Shanghai"); err != nil {
		return err
	}
	w.Mailbox, err = mailbox.Open(mailbox.Config{DSN: w.MailboxDSN, Zone: w.Zone, TableIn: "CMINMSGS", TableOut: "COUTMSGS"})
	return err
}

// Env is the part of a pod's configuration that names the broker and lets it begin with an empty system.
func (w *World) Env() []string {
	return []string{
		"MSGX_KAFKA_BROKERS=" + strings.Join(w.Broker.ListenAddrs(), ","),
		"MSGX_HTTP_ADDR=127.0.0.1:0",
		"MSGX_PIPELINE_CUTOVER_WATERMARK=zero",
	}
}

// Close stops everything that was started.
func (w *World) Close() error {
	var errs []error
	if w.Mailbox != nil {
		errs = append(errs, w.Mailbox.Close())
	}
	if w.Pool != nil {
		w.Pool.Close()
	}
	for _, s := range []*dbserver.Server{w.PG, w.MariaDB} {
		if s != nil {
			errs = append(errs, s.Stop())
		}
	}
	if w.Broker != nil && w.Broker.Cluster != nil {
		w.Broker.Close()
	}
	errs = append(errs, os.RemoveAll(w.dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the world: %w", err)
	}
	return nil
}
