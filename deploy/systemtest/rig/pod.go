package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Pod is one running process of the program.
type Pod struct {
	Name string
	Log  *Log

	cmd  *exec.Cmd
	done chan struct{}
}

// Start runs the program with these arguments and, over our own environment, this one. It ends with ctx at the latest.
func Start(ctx context.Context, name, program string, args, env []string) (*Pod, error) {
	p := &Pod{Name: name, Log: &Log{}, cmd: exec.CommandContext(ctx, program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start pod %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ExitCode tells
	}()
	return p, nil
}

// PID is the process's.
func (p *Pod) PID() int { return p.cmd.Process.Pid }

// Kill is kill -9, and waits for the end.
func (p *Pod) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Signal sends s.
func (p *Pod) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed once the process has ended.
func (p *Pod) Done() <-chan struct{} { return p.done }

// ExitCode is the code with which the process ended, -1 when a signal ended it. Only after Done.
func (p *Pod) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Exit waits for the process to end by itself and gives its code.
func (p *Pod) Exit(within time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("pod %s did not end within %s", p.Name, within)
	}
}

// Address is the URL of the HTTP that the pod says it serves; ok is false while it does not.
func (p *Pod) Address() (url string, ok bool) {
	m := regexp.MustCompile(`"msg":"serving".*?"addr":"([^"]+)"`).FindStringSubmatch(p.Log.String())
	if m == nil {
		return "", false
	}
	return "http://" + m[1], true
}

// Log keeps what a process wrote, the newest of it. Safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// A log that grows beyond maxLogBytes loses its older half.
const maxLogBytes = 8 << 20

// Write is io.Writer's.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > maxLogBytes {
		l.b.Next(maxLogBytes / 2)
	}
	return l.b.Write(p)
}

// String gives all that is kept.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Tail gives the last lines.
func (l *Log) Tail(lines int) string {
	all := strings.Split(l.String(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
