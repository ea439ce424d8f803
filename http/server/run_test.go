package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"msgexchange/http/server"
)

// slow answers when it is let go.
type slow struct {
	pages
	entered, release chan struct{}
}

func (s slow) Summary(c *gin.Context) error {
	close(s.entered)
	<-s.release
	return s.answer(c)
}

// A request in flight is finished before the server ends; nobody new gets in.
func TestRun_drains(t *testing.T) {
	t.Parallel()
	s := slow{entered: make(chan struct{}), release: make(chan struct{})}
	w := newWorld(t, func(_ *server.Config, d *server.Deps) { d.Ops = s })
	srv, err := server.New(w.cfg, w.deps)
	require.NoError(t, err)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx, ln) }()

	answer := make(chan string, 1)
	go func() { answer <- fetch(t, "http://"+ln.Addr().String()+"/ops/summary") }()
	<-s.entered
	stop()
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 5*time.Second, 5*time.Millisecond, "closed to newcomers")
	close(s.release)
	require.Equal(t, "{}", <-answer)
	require.NoError(t, <-ended)
}

func TestRun_takenListener(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv, err := server.New(w.cfg, w.deps)
	require.NoError(t, err)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	require.ErrorContains(t, srv.Run(t.Context(), ln), "serve http")
}

// fetch gives the body, or what went wrong as text: it runs beside the test.
func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = got.Body.Close() }()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// A caller who never finishes, in the header or in the body, loses its connection; others are served meanwhile.
func TestRun_slowCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.ReadHeaderTimeout, w.cfg.ReadTimeout = time.Second, time.Second
	srv, err := server.New(w.cfg, w.deps)
	require.NoError(t, err)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx, ln) }()
	var slow []net.Conn
	for _, begun := range []string{
		"GET /flights HTTP/1.1\r\nHost: x\r\n",
		"POST /cminmsgs/send HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<MSG>",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute))) // the test fails, it does not hang
		_, err = conn.Write([]byte(begun))
		require.NoError(t, err)
		slow = append(slow, conn)
	}
	require.Equal(t, "{}", fetch(t, "http://"+ln.Addr().String()+"/ops/summary"))
	for _, conn := range slow {
		_, err := io.ReadAll(conn)
		require.NoError(t, err, "closed by the server")
		require.NoError(t, conn.Close())
	}
	require.Empty(t, w.mailbox.texts)
	stop()
	require.NoError(t, <-ended)
}
