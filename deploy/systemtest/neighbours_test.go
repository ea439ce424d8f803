package systemtest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Logstash that takes a connection and reads nothing, and Eureka that never answers, hold up neither the work nor the end.
func TestNeighboursThatHang(t *testing.T) {
	t.Parallel()
	stalled, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = stalled.Close() })
	hang := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(hang) })

	w := newWorld(t)
	p := w.start(t, "a", "MSGX_LOG_LEVEL=debug", "MSGX_LOGSTASH_ADDR="+stalled.Addr().String(), "MSGX_LOGSTASH_QUEUE=5", "MSGX_EUREKA_URLS="+silent.URL)
	stop := w.traffic(t, 5*time.Millisecond)
	eventually(t, 30*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM proc_state WHERE state = 'SUCCEEDED'"); n < 200 {
			return fmt.Errorf("%d messages", n)
		}
		return nil
	})
	w.settled(t, stop(), 30*time.Second)
	_, metrics := get(t, p.address()+"/metrics")
	require.Contains(t, metrics, "\nmsgx_logstash_connected 1\n")
	require.Contains(t, metrics, "\nmsgx_logstash_dropped_total ")
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(30*time.Second))
}

// Both get what they are for: the log to the last record, and the registration until the end, under the service's name.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	in, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	records := make(chan string, 10_000)
	go func() {
		for {
			conn, err := in.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					records <- lines.Text()
				}
			}()
		}
	}()
	calls := make(chan string, 1000)
	registry := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls <- r.Method + " " + r.URL.Path }))
	t.Cleanup(registry.Close)

	w := newWorld(t)
	p := w.start(t, "a", "MSGX_MODE=shadow", "MSGX_LOGSTASH_ADDR="+in.Addr().String(), "MSGX_EUREKA_URLS="+registry.URL+"/eureka")
	hear(t, calls, "POST /eureka/apps/MSGEXCHANGEAPI-SHADOW")
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(30*time.Second))
	hear(t, calls, "DELETE /eureka/apps/MSGEXCHANGEAPI-SHADOW/127.0.0.1:msgexchangeapi-shadow:")
	hear(t, records, `"message":"serving"`)
	hear(t, records, `"message":"stopped"`)
}

// hear waits for a text that contains want.
func hear(t *testing.T, from <-chan string, want string) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case text := <-from:
			if strings.Contains(text, want) {
				return
			}
		case <-timeout:
			require.Fail(t, "never heard "+want)
		}
	}
}
