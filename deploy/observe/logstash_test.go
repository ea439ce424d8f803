package observe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/deploy/observe"
)

// patience is far longer than anything takes here.
const patience = 20 * time.Second

// input is Logstash's TCP input: a test accepts its connections one by one.
type input struct {
	t *testing.T
	net.Listener
}

func listen(t *testing.T, addr string) input {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return input{t, l}
}

func (in input) accept() (net.Conn, *bufio.Scanner) {
	in.t.Helper()
	require.NoError(in.t, in.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	conn, err := in.Accept()
	require.NoError(in.t, err)
	in.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(in.t, conn.SetReadDeadline(time.Now().Add(patience)))
	return conn, bufio.NewScanner(conn)
}

// sink is a running one, with its log; end ends it and waits.
func sink(t *testing.T, addr string, queue int) (l *observe.Logstash, log *slog.Logger, end func()) {
	t.Helper()
	l = observe.NewLogstash(addr, queue, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	end = func() {
		stop()
		select {
		case <-done:
		case <-time.After(patience):
			require.Fail(t, "the sink does not end")
		}
	}
	t.Cleanup(end)
	return l, slog.New(l.Handler(slog.LevelInfo, "msgexchangeapi")), end
}

func number(t *testing.T, l *observe.Logstash, name string) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(l))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
		}
	}
	require.Fail(t, "no metric", name)
	return 0
}

func TestLogstashGetsRecordsInItsOwnWords(t *testing.T) {
	t.Parallel()
	in := listen(t, "127.0.0.1:0")
	_, log, _ := sink(t, in.Addr().String(), 10)
	log.Debug("too little")
	log.Warn("late arrival", "msg_id", 4711)
	_, lines := in.accept()
	require.True(t, lines.Scan(), lines.Err())
	var record map[string]any
	require.NoError(t, json.Unmarshal(lines.Bytes(), &record))
	at, err := time.Parse(time.RFC3339Nano, record["@timestamp"].(string))
	require.NoError(t, err)
	require.Equal(t, time.UTC, at.Location())
	delete(record, "@timestamp")
	require.Equal(t, map[string]any{"message": "late arrival", "level": "WARN", "msg_id": 4711.0, "service": "msgexchangeapi", "@version": "1"}, record)
}

// An input that stalls, with full buffers on the way: nobody who logs waits, what does not fit is counted, and the end comes.
func TestLogstashStalls(t *testing.T) {
	t.Parallel()
	in := listen(t, "127.0.0.1:0")
	l, log, end := sink(t, in.Addr().String(), 50)
	_, _ = in.accept() // and never reads
	long := strings.Repeat("x", 100<<10)
	const records = 1000 // 100 MB, more than any buffer holds
	for n := range records {
		log.Info("message processed", "n", n, "text", long)
	}
	require.Positive(t, number(t, l, "msgx_logstash_dropped_total"))
	end()
	require.Equal(t, records, number(t, l, "msgx_logstash_dropped_total")+number(t, l, "msgx_logstash_sent_total"), "each is accounted for")
}

// Nobody listens, then somebody does, then that one closes and another comes.
func TestLogstashConnectsAgain(t *testing.T) {
	t.Parallel()
	first := listen(t, "127.0.0.1:0")
	addr := first.Addr().String()
	require.NoError(t, first.Close())
	l, log, _ := sink(t, addr, 100)
	log.Info("early")
	in := listen(t, addr)
	conn, lines := in.accept()
	require.True(t, lines.Scan(), lines.Err())
	require.Contains(t, lines.Text(), "early")
	require.NoError(t, conn.Close())

	_, lines = in.accept()
	log.Info("after the break")
	require.True(t, lines.Scan(), lines.Err())
	require.Contains(t, lines.Text(), "after the break")
	require.Equal(t, 1, number(t, l, "msgx_logstash_connected"))
	require.Zero(t, number(t, l, "msgx_logstash_dropped_total"))
}

// What waits at the end is still sent; without anybody to send it to, it is counted as dropped.
func TestLogstashAtTheEnd(t *testing.T) {
	t.Parallel()
	in := listen(t, "127.0.0.1:0")
	l := observe.NewLogstash(in.Addr().String(), 10, slog.New(slog.DiscardHandler))
	slog.New(l.Handler(slog.LevelInfo, "s")).Info("stopped")
	ended, stop := context.WithCancel(t.Context())
	stop()
	l.Run(ended)
	_, lines := in.accept()
	require.True(t, lines.Scan(), lines.Err())
	require.Contains(t, lines.Text(), "stopped")
	require.Equal(t, 1, number(t, l, "msgx_logstash_sent_total"))

	require.NoError(t, in.Close())
	slog.New(l.Handler(slog.LevelInfo, "s")).Info("stopped")
	l.Run(ended)
	require.Equal(t, 1, number(t, l, "msgx_logstash_dropped_total"))
}
