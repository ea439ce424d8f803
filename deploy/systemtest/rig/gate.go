package rig

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// gate holds connections that can be cut and frozen together.
type gate struct {
	frozen sync.RWMutex // held for reading while a piece is passed on, for writing while nothing goes through
	pause  atomic.Int64 // nanoseconds before each piece

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

// Freeze keeps connections open and lets nothing through until thaw is called; calling that again does nothing.
func (g *gate) Freeze() (thaw func()) {
	g.frozen.Lock()
	return sync.OnceFunc(g.frozen.Unlock)
}

// Cut ends everything that runs through and lets nothing new in, or, with false, lets it in again.
func (g *gate) Cut(off bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = off
	if off {
		for c := range g.conns {
			_ = c.Close()
		}
	}
}

// enter registers a connection; one that comes while it is cut is closed.
func (g *gate) enter(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut {
		_ = c.Close()
		return false
	}
	if g.conns == nil {
		g.conns = map[net.Conn]struct{}{}
	}
	g.conns[c] = struct{}{}
	return true
}

func (g *gate) leave(c net.Conn) {
	_ = c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// Delay lets each piece wait so long.
func (g *gate) Delay(d time.Duration) { g.pause.Store(int64(d)) }

// write passes a piece on once nothing is frozen.
func (g *gate) write(to net.Conn, piece []byte) (int, error) {
	if d := g.pause.Load(); d > 0 {
		<-time.After(time.Duration(d))
	}
	g.frozen.RLock()
	defer g.frozen.RUnlock()
	return to.Write(piece)
}

// Proxy passes TCP through to one server until it is cut or frozen.
type Proxy struct {
	Addr string // where to connect instead

	gate
	target    string
	listener  net.Listener
	watch     func(piece []byte) (lose bool) // under mu
	real, own []byte                         // Instead; under mu
}

// Instead makes a broker's answers name the proxy where they name the broker itself, so that clients of later connections come
// back to the proxy: in Kafka's answers an address is the host followed by four bytes of port.
func (p *Proxy) Instead(broker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.real, p.own = onWire(broker), onWire(p.Addr)
}

func onWire(addr string) []byte {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.ParseUint(port, 10, 16)
	return binary.BigEndian.AppendUint32([]byte(host), uint32(n))
}

// rename gives what edits answers.
func (p *Proxy) rename() func(piece []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, after := p.real, p.own
	return func(piece []byte) {
		if len(before) != len(after) || len(before) == 0 {
			return
		}
		for i := bytes.Index(piece, before); i >= 0; i = bytes.Index(piece, before) {
			copy(piece[i:], after)
		}
	}
}

// Watch lets f see each piece that clients of later connections send. When f says so, the piece still reaches the server, but
// its answer is lost and the connection ends. f must be safe for concurrent use.
func (p *Proxy) Watch(f func(piece []byte) (lose bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

func (p *Proxy) watcher() func(piece []byte) (lose bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watch == nil {
		return func([]byte) bool { return false }
	}
	return p.watch
}

// OpenProxy makes one on a free port.
func OpenProxy(ctx context.Context, target string) (*Proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(ctx, c)
		}
	}()
	return p, nil
}

// Close cuts everything for good.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut(true)
}

func (p *Proxy) pass(ctx context.Context, in net.Conn) {
	if !p.enter(in) {
		return
	}
	defer p.leave(in)
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil || !p.enter(out) {
		return
	}
	defer p.leave(out)
	done := make(chan struct{}, 2)
	var losing atomic.Bool
	watch, rename := p.watcher(), p.rename()
	go func() {
		defer func() { done <- struct{}{} }()
		p.copy(in, out, func(piece []byte) bool {
			if watch(piece) {
				losing.Store(true)
			}
			return true
		})
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		p.copy(out, in, func(piece []byte) bool {
			rename(piece)
			return !losing.Load()
		})
	}()
	<-done
}

// copy goes on until either end is closed or a piece may not pass.
func (p *Proxy) copy(from, to net.Conn, may func(piece []byte) bool) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if !may(piece[:n]) {
				return
			}
			if _, err := p.write(to, piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
