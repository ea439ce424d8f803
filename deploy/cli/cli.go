// Package cli is the command line: one struct a command, each in its own file (contract §2). It turns arguments into calls
// and errors into exit codes: 0 all is well, 1 the work failed or the configuration is wrong, 2 the command was not understood.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/deploy/config"
	"msgexchange/deploy/observe"
)

// Process is what the operating system hands a program.
type Process struct {
	Args    []string // without the program's name
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Version string // as the linker was told; empty otherwise
	Commit  string
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is the grammar; the fields' order is that of the help.
type commands struct {
	Serve    serve    `cmd:"" help:"Run the workers, the HTTP server, or both."`
	Migrate  migrate  `cmd:"" help:"Bring the database's schema up to date, or show where it stands."`
	Demo     demo     `cmd:"" help:"Run the whole system on this machine, with everything it needs."`
	Simulate simulate `cmd:"" help:"Write realistic messages into the mailbox."`
	Doctor   examine  `cmd:"" help:"Check every dependency and right; say what to do about what is wrong."`
	Replay   replay   `cmd:"" help:"Put messages that failed back into the line."`
	Compare  contrast `cmd:"" help:"Compare the flights of two systems field by field."`
	Decode   decode   `cmd:"" help:"Decode a message and print it as JSON."`
	Version  version  `cmd:"" help:"Print version, commit and Go."`
}

// exitError ends the program with a code; a nil err says that the command has already said everything.
type exitError struct {
	code int
	err  error
}

// Error is the text of the cause.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap gives the cause.
func (e *exitError) Unwrap() error { return e.err }

// Main runs the command that the arguments name until it is done or ctx is, and gives the exit code.
func Main(ctx context.Context, p Process) int {
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("msgexchange"),
		kong.Description("Airport messages out of a shared mailbox into flight state and Kafka: in order, nothing lost."),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { helped = true }), // kong means to end the process after --help; we end by returning
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.UsageOnError(),
	)
	if err != nil {
		return p.fail(err)
	}
	command, err := parser.Parse(p.Args)
	if helped {
		return exitOK
	}
	if err != nil {
		return p.fail(&exitError{code: exitUsage, err: fmt.Errorf("%w (see msgexchange --help)", err)})
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return p.fail(command.Run(&p))
}

// fail says what went wrong, one line a problem, and gives the exit code. No error is success.
func (p *Process) fail(err error) int {
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{code: exitFailed, err: err}
	}
	if exit.err != nil {
		for _, line := range config.Problems(err) {
			fmt.Fprintf(p.Stderr, "msgexchange: %s\n", line)
		}
	}
	return exit.code
}

// configured is embedded by the commands that need the configuration.
type configured struct {
	Config      string `help:"YAML file with the configuration; the environment (MSGX_A_B_C for key a.b-c) wins over it." placeholder:"FILE" type:"path"`
	PrintConfig bool   `help:"Print the configuration as it would be used, secrets masked, and end."`
}

// load composes the configuration; uses names the sections that the command needs, none for all. done says that it was only
// to be printed, and has been, with what is wrong as the error.
func (c configured) load(p *Process, uses ...string) (_ config.Config, done bool, _ error) {
	cfg, err := config.Load(config.Sources{File: c.Config, Environ: p.Environ, Uses: uses})
	if c.PrintConfig {
		return cfg, true, errors.Join(config.Print(p.Stdout, cfg), err)
	}
	return cfg, err != nil, err
}

// logger is how a configured command logs: to standard error, so that its output stays its own.
func logger(p *Process, cfg config.Config) *slog.Logger {
	return observe.NewLogger(p.Stderr, observe.Log(cfg.Log), cfg.ServiceName)
}

// logging is where a process logs besides standard error.
type logging struct {
	metrics []prometheus.Collector
	end     func() // sends what waits, for a moment
}

// loggers is logger, and Logstash too when there is one.
func loggers(p *Process, cfg config.Config) (*slog.Logger, logging) {
	if cfg.Logstash.Addr == "" {
		return logger(p, cfg), logging{end: func() {}}
	}
	l := observe.NewLogstash(cfg.Logstash.Addr, cfg.Logstash.Queue, logger(p, cfg))
	ctx, stop := context.WithCancel(context.Background()) //nolint:contextcheck // it outlives the work, to tell of its end
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	log := observe.NewLogger(p.Stderr, observe.Log(cfg.Log), cfg.ServiceName, l.Handler(cfg.Log.Level, cfg.ServiceName))
	return log, logging{metrics: []prometheus.Collector{l}, end: func() { stop(); running.Wait() }}
}
