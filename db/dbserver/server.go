// Package dbserver starts a private PostgreSQL or MariaDB from the binaries on the machine: own folder, own free port,
// loopback only, own password. The tests and the demo use it; nothing in production does. As root it drops to an
// unprivileged user, because PostgreSQL refuses to run as root. A server that is not stopped ends with this process
// (on Linux).
package dbserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ErrNotInstalled says that the server's programs are nowhere on this machine.
var ErrNotInstalled = errors.New("not installed")

// Options of a server. The zero value is a fast throw-away server in UTC.
type Options struct {
	// Dir keeps the data; made when missing, used again when not, never removed. Empty: a temporary folder, removed by Stop.
	Dir string
	// Zone is the server's time zone, "America/St_Johns". Empty: UTC.
	Zone string
	// Durable makes commits survive a power cut, as in production. Without it only a kill of the server is survived.
	Durable bool
	// Settings are further settings by their name in the server's configuration file.
	Settings map[string]string
}

// Deadlines of the life of a server. A slow, busy machine must not trip them.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
	pollPause    = 25 * time.Millisecond
	portTries    = 3
)

// engine is what differs between the two servers.
type engine interface {
	name() string
	// init makes an empty cluster in dir/data.
	init(ctx context.Context, s *Server) error
	// command is the server on s.port, in the foreground.
	command(s *Server) []string
	dsn(s *Server) string
	// ready is nil when the server answers statements.
	ready(ctx context.Context, dsn string) error
	// The signals for an orderly and for an abrupt end.
	stopSignal() syscall.Signal
	killSignal() syscall.Signal
}

// Server is a running private server. Its methods must not be called at the same time.
type Server struct {
	// DSN of an administrator; it stays the same over Restart.
	DSN string
	// Addr is host:port.
	Addr string
	// BinDir holds the server's tools, pg_dump for one.
	BinDir string

	engine   engine
	opts     Options
	dir      string
	temp     *tempDir // nil when the folder is kept
	port     int
	password string
	user     *account
	env      []string
	proc     *process
}

// start brings up an engine whose programs are in binDir.
func start(ctx context.Context, e engine, binDir string, opts Options) (_ *Server, err error) {
	s := &Server{BinDir: binDir, engine: e, opts: opts, dir: opts.Dir}
	if s.user, err = unprivileged(); err != nil {
		return nil, fmt.Errorf("start %s: %w", e.name(), err)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", e.name(), err), s.discard())
	}
	// Another process may take the free port before the server does; then it is tried again with another one.
	for range portTries {
		if s.port, err = freePort(ctx); err != nil {
			break
		}
		s.Addr = net.JoinHostPort("127.0.0.1", fmt.Sprint(s.port))
		s.DSN = e.dsn(s)
		if err = s.run(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(fmt.Errorf("start %s: %w", e.name(), err), s.discard())
}

// prepare makes folder, password and cluster, as far as they are not there.
func (s *Server) prepare(ctx context.Context) (err error) {
	if s.dir == "" {
		if s.temp, err = newTempDir(s.engine.name()); err != nil {
			return err
		}
		s.dir = s.temp.path
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.user.reaches(s.dir); err != nil {
		return err
	}
	if s.password, err = keptPassword(filepath.Join(s.dir, "password")); err != nil {
		return err
	}
	if err := s.give(s.dir); err != nil {
		return err
	}
	// A MariaDB that starts deletes the temporary tables it finds, also those of one that is running: to each its own folder.
	s.env = append(environment(s.BinDir), "TZ="+s.zone(), "TMPDIR="+s.dir)
	if _, err := os.Stat(s.doneFile()); err == nil {
		return nil
	}
	if err := os.RemoveAll(s.dataDir()); err != nil { // a half-made cluster
		return err
	}
	if err := s.engine.init(ctx, s); err != nil {
		return err
	}
	if err := os.WriteFile(s.doneFile(), nil, 0o600); err != nil {
		return err
	}
	return s.give(s.doneFile())
}

func (s *Server) dataDir() string  { return filepath.Join(s.dir, "data") }
func (s *Server) doneFile() string { return filepath.Join(s.dir, "initialised") }
func (s *Server) logFile() string  { return filepath.Join(s.dir, "server.log") }

func (s *Server) zone() string {
	if s.opts.Zone == "" {
		return "UTC"
	}
	return s.opts.Zone
}

// tool runs one of the server's programs to its end.
func (s *Server) tool(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = attributes(s.user, syscall.SIGKILL)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// run starts the server's process and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	argv := s.engine.command(s)
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // the server outlives the call that starts it
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, log, log
	cmd.SysProcAttr = attributes(s.user, s.engine.killSignal())
	if s.proc, err = launch(cmd); err != nil {
		return err
	}
	if err := s.waitReady(ctx); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		err := s.engine.ready(ctx, s.DSN)
		if err == nil {
			return nil
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("the server ended at once: %s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w: %s", err, s.logTail())
		case <-tick.C:
		}
	}
}

// maxLogTail is how much of the server's log an error shows.
const maxLogTail = 2000

func (s *Server) logTail() string {
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-maxLogTail):]))
}

// Stop ends the server in order, cutting its clients off, and removes a temporary folder. Stopping twice does nothing.
func (s *Server) Stop() error {
	return errors.Join(s.end(s.engine.stopSignal()), s.discard())
}

// Kill ends the server as a crash would, and keeps its folder: Restart recovers it.
func (s *Server) Kill() error { return s.end(s.engine.killSignal()) }

// Restart stops the server if it runs and starts it again on the same port with the same data.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.end(s.engine.stopSignal()); err != nil {
		return fmt.Errorf("restart %s: %w", s.engine.name(), err)
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", s.engine.name(), err)
	}
	return nil
}

func (s *Server) end(sig syscall.Signal) error {
	if s.proc == nil {
		return nil
	}
	err := s.proc.end(sig)
	s.proc = nil
	return err
}

func (s *Server) discard() error {
	if s.temp == nil {
		return nil
	}
	temp := s.temp
	s.temp = nil
	return temp.remove()
}

// give makes the unprivileged user the owner of path and everything below it.
func (s *Server) give(path string) error {
	if s.user == nil {
		return nil
	}
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(s.user.uid), int(s.user.gid))
	})
}

// freePort asks the system for a port that nobody uses.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// process is a child with a goroutine of its own that waits for it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child is gone
}

// launch starts cmd. Starting and waiting share one locked thread: the child's parent-death signal is bound to the
// thread that started it.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended says nothing: we ended it, or its log tells
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// end signals the child and waits; one that does not go is killed with its whole group.
func (p *process) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.done
	return nil
}
