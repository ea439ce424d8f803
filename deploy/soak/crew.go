package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"msgexchange/deploy/systemtest/rig"
)

// podSettings make a pod's life fit into minutes. Rows of the simulator come up to 3.1 s late, so that with this commit delay
// some come in time and some when their hole was passed. Nobody is to die of kills that hit one message again and again.
func podSettings() []string {
	return []string{
		"MSGX_PIPELINE_MAX_COMMIT_DELAY=2s",
		"MSGX_PIPELINE_LATE_DETECT_PERIOD=2s",
		"MSGX_PIPELINE_MAX_ATTEMPTS=50",
		"MSGX_SCHD_FLUSH_PERIOD=500ms",
	}
}

// crew are the pods; each is started again whenever it ends, as a platform would.
type crew struct {
	world   *rig.World
	say     func(string, ...any)
	folder  string
	members []*member

	over context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	wrong []string
}

// member is one place in the crew, with doors of its own: the pods are cut off one by one.
type member struct {
	name  string
	doors *rig.Doors

	mu   sync.Mutex
	pod  *rig.Pod
	logs []*rig.Log // of all lives
}

// hire starts the pods.
func hire(ctx context.Context, w *rig.World, o options, say func(string, ...any)) (*crew, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crew{world: w, say: say, folder: o.Logs, over: cancel}
	for i := range o.Pods {
		doors, err := rig.OpenDoors(ctx, w.PGDSN, w.MailboxDSN)
		if err != nil {
			c.dismiss()
			return nil, err
		}
		m := &member{name: string(rune('a' + i)), doors: doors}
		c.members = append(c.members, m)
		c.all.Go(func() { c.employ(ctx, m) })
	}
	return c, nil
}

// employ keeps one place filled until the crew is dismissed.
func (c *crew) employ(ctx context.Context, m *member) {
	for ctx.Err() == nil {
		env := append(append(c.world.Env(), m.doors.Env()...), podSettings()...)
		pod, err := rig.Start(ctx, m.name, c.world.Program, []string{"serve"}, env)
		if err != nil {
			c.complain("%v", err)
			return
		}
		m.took(pod)
		<-pod.Done()
		if ctx.Err() == nil {
			c.inspect(m, pod)
			pause(ctx, 300*time.Millisecond)
		}
	}
}

// inspect looks at how a pod ended. One that refuses to start while its database is away is right to end with 1.
func (c *crew) inspect(m *member, pod *rig.Pod) {
	text := pod.Log.String()
	if strings.Contains(text, "panic: ") || strings.Contains(text, "fatal error: ") || strings.Contains(text, "DATA RACE") {
		c.complain("pod %s: a panic:\n%s", m.name, pod.Log.Tail(60))
	}
	if code := pod.ExitCode(); code > 1 {
		c.complain("pod %s ended by itself with %d:\n%s", m.name, code, pod.Log.Tail(20))
	}
}

func (c *crew) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func (c *crew) problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.wrong...)
}

func (m *member) took(pod *rig.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pod = pod
	m.logs = append(m.logs, pod.Log)
}

// now is the pod in this place, running or not; nil before the first.
func (m *member) now() *rig.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pod
}

// terminate asks a pod to end in order; it must within its grace, whatever else is broken (contract §8.5).
func (c *crew) terminate(m *member) {
	pod := m.now()
	if pod == nil || pod.Signal(syscall.SIGTERM) != nil {
		return // it has ended already
	}
	const grace, margin = 25 * time.Second, 10 * time.Second
	code, err := pod.Exit(grace + margin)
	if err != nil {
		c.complain("%v after SIGTERM:\n%s", err, pod.Log.Tail(60))
		pod.Kill()
	} else if code != 0 && serving(pod) {
		c.complain("pod %s ended with %d after SIGTERM:\n%s", m.name, code, pod.Log.Tail(60))
	}
}

// serving says that the pod had come up.
func serving(pod *rig.Pod) bool {
	_, ok := pod.Address()
	return ok
}

// retire ends all pods in order; one that is started again meanwhile is killed.
func (c *crew) retire() {
	var g sync.WaitGroup
	for _, m := range c.members {
		g.Go(func() { c.terminate(m) })
	}
	g.Wait()
	c.dismiss()
}

// dismiss kills what is left.
func (c *crew) dismiss() {
	c.over()
	c.all.Wait()
	for _, m := range c.members {
		m.doors.Close()
	}
}

// logs gives the ends of the last logs, and writes all of them into the folder if there is one.
func (c *crew) logs() string {
	var b strings.Builder
	for _, m := range c.members {
		m.mu.Lock()
		for i, l := range m.logs {
			if c.folder != "" {
				file := filepath.Join(c.folder, fmt.Sprintf("%s-%03d.log", m.name, i))
				if err := os.WriteFile(file, []byte(l.String()), 0o600); err != nil {
					c.say("%v", err)
				}
			}
		}
		if n := len(m.logs); n > 0 {
			fmt.Fprintf(&b, "---- pod %s, the last of %d lives\n%s\n", m.name, n, m.logs[n-1].Tail(40))
		}
		m.mu.Unlock()
	}
	return b.String()
}
