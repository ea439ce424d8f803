//go:build demo

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"msgexchange/deploy/config"
	"msgexchange/deploy/simulator"
)

// Serve runs the normal workers and the HTTP server on l, with this configuration, until ctx ends.
type Serve func(ctx context.Context, cfg config.Config, l net.Listener, log *slog.Logger) error

// Options of a demo.
type Options struct {
	Duration time.Duration // of the traffic; 0 = until ctx ends
	Rate     float64       // messages a second; 0 = as fast as possible
	Flights  int           // of a day's schedule
	Seed     uint64
	Lists    bool // send reference lists too, see simulator.Options
	Ask      bool // make requests to the airport database too, by HTTP; the workers must serve it
	JSON     bool // Out gets one JSON document, the summary; everything else goes to Err
	Serve    Serve
	Out, Err io.Writer
	Terminal bool // Err is a terminal: the status line is written over each second, else a new one comes each 5 s
}

// The demo's times.
const (
	settleTimeout = 30 * time.Second // how long nothing may move once the traffic has ended, unless all is done
	endTimeout    = 40 * time.Second // from then until the workers must have ended
	countTimeout  = 30 * time.Second
	statusTimeout = 2 * time.Second
)

// ErrUnequal says that what came out is not what went in; the summary, already printed, says where.
var ErrUnequal = errors.New("demo: the numbers do not add up")

// Run starts everything, lets it work until the duration is over or ctx ends, waits until all that was written is done,
// stops it and prints the summary. It returns ErrUnequal when the numbers do not add up.
func Run(ctx context.Context, o Options) (err error) {
	w, err := build(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	out := o.Out
	if o.JSON {
		out = o.Err
	}
	w.introduce(out)

	written, err := w.work(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	s, countErr := w.count(ctx)
	if err := errors.Join(err, countErr); err != nil {
		return err
	}
	s.Written = written
	s.check()
	if err := s.print(o.Out, o.JSON); err != nil {
		return err
	}
	if len(s.Problems) > 0 {
		return ErrUnequal
	}
	return nil
}

// work runs the workers, and traffic for them until the duration is over or ctx ends; the workers end when all is quiet.
func (w *world) work(ctx context.Context) (simulator.Counts, error) {
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	served := make(chan error, 1)
	go func() {
		err := w.Serve(working, w.cfg, w.listener, w.log)
		if working.Err() == nil { // they ended by themselves: nothing more will be done
			err = errors.Join(errors.New("demo: the workers ended early"), err)
		}
		served <- err
		stop(err)
	}()

	writing, end := context.WithCancel(ctx)
	defer end()
	context.AfterFunc(working, end)
	counts, err := w.traffic(writing, working)
	stop(nil)
	select {
	case serveErr := <-served:
		return counts, errors.Join(err, serveErr)
	case <-time.After(endTimeout):
		return counts, errors.Join(err, fmt.Errorf("demo: the workers did not end within %s; see %s", endTimeout, w.logFile))
	}
}

// traffic writes messages until writing ends, then waits until they are all done; the status line goes on meanwhile.
func (w *world) traffic(writing, working context.Context) (counts simulator.Counts, err error) {
	writer, db, err := w.writer()
	if err != nil {
		return counts, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	working, done := context.WithCancel(working)
	defer done()
	var g errgroup.Group
	g.Go(func() error { w.report(working); return nil })
	g.Go(func() (err error) {
		defer done()
		if counts, err = w.write(writing, writer, db); err != nil {
			return err
		}
		w.settle(working)
		return nil
	})
	return counts, g.Wait()
}

// write runs both hands of the simulated airport, and who asks of it, until ctx ends or the duration is over.
func (w *world) write(ctx context.Context, writer *simulator.Writer, db *sql.DB) (counts simulator.Counts, err error) {
	if !w.Ask {
		return writer.Run(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { w.ask(ctx); return nil })
	g.Go(func() error { _, err := w.responder(db).Run(ctx); return err })
	counts, err = writer.Run(ctx)
	end()
	return counts, errors.Join(err, g.Wait())
}

// writer is the simulated airport, connected to the mailbox.
func (w *world) writer() (*simulator.Writer, *sql.DB, error) {
	stream, err := simulator.New(simulator.Options{
		Seed: w.Seed, Flights: w.Flights, Lists: w.Lists, Zone: w.zone, Day: time.Now().In(w.zone),
	})
	if err != nil {
		return nil, nil, err
	}
	cfg, err := mysql.ParseDSN(w.mailbox.dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	cfg.InterpolateParams = true // one way and back for a statement
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	db := sql.OpenDB(connector)
	table := simulator.NewTable(db, w.mailbox.in.name, w.zone)
	return &simulator.Writer{Stream: stream, Mailbox: table, Rate: w.Rate, For: w.Duration}, db, nil
}

// settle waits until nothing is left to do, until nothing has moved for too long, or until the workers have ended.
func (w *world) settle(ctx context.Context) {
	const pause = 100 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	moved, done := time.Now(), 0
	for time.Since(moved) < settleTimeout {
		if s, err := w.count(ctx); err == nil {
			if s.settled() {
				return
			}
			if s.done() > done {
				moved, done = time.Now(), s.done()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
