// Command serve runs a command with a private PostgreSQL and MariaDB beside it, so that all test processes of a run
// share one pair of servers:
//
//	go run ./db/dbtest/serve -- go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"msgexchange/db/dbserver"
	"msgexchange/db/dbtest"
)

// grace is how long the command gets to end after a signal.
const grace = 10 * time.Second

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: serve -- COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, args)
	stop()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.ExitCode() > 0:
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// run starts both servers, runs the command with their DSNs in its environment, and stops them.
func run(ctx context.Context, args []string) (err error) {
	var postgres, mariadb *dbserver.Server
	defer func() {
		for _, s := range []*dbserver.Server{postgres, mariadb} {
			if s != nil {
				err = errors.Join(err, s.Stop())
			}
		}
	}()
	var g errgroup.Group
	opts := dbserver.Options{Zone: dbtest.Zone}
	g.Go(func() (err error) { postgres, err = dbserver.StartPostgres(ctx, opts); return err })
	g.Go(func() (err error) { mariadb, err = dbserver.StartMariaDB(ctx, opts); return err })
	if err := g.Wait(); err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), dbtest.EnvPostgres+"="+postgres.DSN, dbtest.EnvMariaDB+"="+mariadb.DSN)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd.Run()
}
