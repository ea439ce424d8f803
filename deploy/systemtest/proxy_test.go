package systemtest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy passes TCP through until it is cut.
type proxy struct {
	addr   string
	target string

	frozen sync.RWMutex // held for reading while passing a piece on, for writing while nothing goes through

	// queries counts the statements that MySQL clients have sent (COM_QUERY).
	queries atomic.Int64
	// loseCommits makes the answer to each nth COMMIT of a PostgreSQL client get lost: it is carried out, and the client sees
	// its connection end. 0: none. lost counts them.
	loseCommits, commits, lost atomic.Int64

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{addr: l.Addr().String(), target: target, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { _ = l.Close(); p.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(t.Context(), c)
		}
	}()
	return p
}

// freeze keeps connections open and lets nothing through, until thaw is called; it ends with the test at the latest.
func (p *proxy) freeze(t *testing.T) (thaw func()) {
	t.Helper()
	p.frozen.Lock()
	thaw = sync.OnceFunc(p.frozen.Unlock)
	t.Cleanup(thaw)
	return thaw
}

// set cuts everything that runs through and lets nothing new in, or lets it in again.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}

func (p *proxy) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) pass(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }()
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !p.enter(c) || !p.enter(out) {
		return
	}
	done := make(chan struct{}, 2)
	var losing atomic.Bool
	go func() { p.copy(out, c, func(b []byte) bool { p.look(b, &losing); return true }); done <- struct{}{} }()
	go func() { p.copy(c, out, func([]byte) bool { return !losing.Load() }); done <- struct{}{} }()
	<-done
}

// copy passes on what may pass, until one side ends or something may not.
func (p *proxy) copy(to, from net.Conn, may func([]byte) bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !may(buf[:n]) {
				return
			}
			p.frozen.RLock()
			_, err := to.Write(buf[:n])
			p.frozen.RUnlock()
			if err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// look sees what a client says.
func (p *proxy) look(b []byte, losing *atomic.Bool) {
	const comQuery = 3
	if len(b) > 4 && b[3] == 0 && b[4] == comQuery {
		p.queries.Add(1)
	}
	if nth := p.loseCommits.Load(); nth > 0 && bytes.Contains(b, []byte("Q\x00\x00\x00\x0bcommit\x00")) && p.commits.Add(1)%nth == 0 {
		losing.Store(true)
		p.lost.Add(1)
	}
}
