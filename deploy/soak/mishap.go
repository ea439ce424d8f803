package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"msgexchange/db/dbserver"
	"msgexchange/deploy/systemtest/rig"
)

// mishap is something that goes wrong, and heals before it returns. Its randomness is drawn before anything is waited for.
type mishap struct {
	name   string
	weight int
	happen func(ctx context.Context, rnd *rand.Rand, say func(string, ...any)) error
}

// tally counts what happened.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) count(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[name]++
}

// loose lets one mishap after the other happen, with pauses between, until ctx ends.
func loose(ctx context.Context, rnd *rand.Rand, all []mishap, t *tally, say func(string, ...any)) error {
	for pause(ctx, between(rnd, time.Second, 5*time.Second)) {
		m := draw(rnd, all)
		t.count(m.name)
		if err := m.happen(ctx, rnd, say); err != nil {
			return err
		}
	}
	return nil
}

func draw(rnd *rand.Rand, all []mishap) mishap {
	total := 0
	for _, m := range all {
		total += m.weight
	}
	at := rnd.IntN(total)
	for _, m := range all {
		if at -= m.weight; at < 0 {
			return m
		}
	}
	return all[0]
}

func between(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rnd.Int64N(int64(most-least)))
}

// podMishaps hit one pod at a time.
func podMishaps(c *crew) []mishap {
	one := func(name string, weight int, least, most time.Duration, do func(m *member) (undo func())) mishap {
		return mishap{name, weight, func(ctx context.Context, rnd *rand.Rand, say func(string, ...any)) error {
			m, long := c.members[rnd.IntN(len(c.members))], between(rnd, least, most)
			say("pod %s  %s, %.1fs", m.name, name, long.Seconds())
			undo := do(m)
			defer undo()
			pause(ctx, long)
			return nil
		}}
	}
	door := func(of func(*rig.Doors) *rig.Proxy, how func(*rig.Proxy) (undo func())) func(*member) func() {
		return func(m *member) func() { return how(of(m.doors)) }
	}
	pg, box := func(d *rig.Doors) *rig.Proxy { return d.PG }, func(d *rig.Doors) *rig.Proxy { return d.Mailbox }
	return []mishap{
		one("kill -9", 5, 0, time.Second, func(m *member) func() {
			if pod := m.now(); pod != nil {
				pod.Kill()
			}
			return func() {}
		}),
		one("SIGTERM", 3, 0, time.Second, func(m *member) func() { c.terminate(m); return func() {} }),
		one("stopped", 4, 500*time.Millisecond, 14*time.Second, func(m *member) func() {
			pod := m.now()
			if pod == nil || pod.Signal(syscall.SIGSTOP) != nil {
				return func() {}
			}
			return func() { _ = pod.Signal(syscall.SIGCONT) }
		}),
		one("postgres cut", 3, 200*time.Millisecond, 4*time.Second, door(pg, cut)),
		one("postgres frozen", 3, 500*time.Millisecond, 12*time.Second, door(pg, (*rig.Proxy).Freeze)),
		one("mailbox cut", 2, 200*time.Millisecond, 4*time.Second, door(box, cut)),
		one("mailbox frozen", 2, 500*time.Millisecond, 8*time.Second, door(box, (*rig.Proxy).Freeze)),
	}
}

func cut(p *rig.Proxy) (undo func()) {
	p.Cut(true)
	return func() { p.Cut(false) }
}

// serverMishaps hit all pods at once.
func serverMishaps(w *rig.World) []mishap {
	away := func(name string, weight int, least, most time.Duration, do func() (undo func())) mishap {
		return mishap{name, weight, func(ctx context.Context, rnd *rand.Rand, say func(string, ...any)) error {
			long := between(rnd, least, most)
			say("%s, %.1fs", name, long.Seconds())
			undo := do()
			defer undo()
			pause(ctx, long)
			return nil
		}}
	}
	restart := func(name string, weight int, s *dbserver.Server, crash bool) mishap {
		return mishap{name, weight, func(ctx context.Context, _ *rand.Rand, say func(string, ...any)) error {
			say("%s", name)
			if crash {
				if err := s.Kill(); err != nil {
					return err
				}
			}
			return s.Restart(context.WithoutCancel(ctx))
		}}
	}
	return []mishap{
		away("kafka cut", 3, 200*time.Millisecond, 5*time.Second, func() func() {
			w.Broker.Cut(true)
			return func() { w.Broker.Cut(false) }
		}),
		away("kafka frozen", 3, 500*time.Millisecond, 8*time.Second, func() func() { return w.Broker.Freeze() }),
		restart("postgres restarted", 1, w.PG, false),
		restart("postgres crashed", 2, w.PG, true),
		restart("mailbox restarted", 1, w.MariaDB, false),
		restart("mailbox crashed", 1, w.MariaDB, true),
	}
}
