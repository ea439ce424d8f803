// Command msgexchange takes the messages of an airport database out of a shared mailbox, keeps the authoritative state of
// every flight and publishes each change to Kafka: in strict order, nothing lost, exactly accounted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image holds nothing but this program, and zones must never depend on the machine (K16)

	"msgexchange/deploy/cli"
)

// Set by the linker: -X main.version=… -X main.commit=….
var version, commit string //nolint:gochecknoglobals // the linker can set nothing else

func main() {
	os.Exit(run())
}

// run ends the context at the first SIGINT or SIGTERM and gives the signals back, so that a second one ends the process.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, cli.Process{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Version: version,
		Commit:  commit,
	})
}
