package observe

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Logstash sends log records to a TCP input of Logstash (codec json_lines). It never keeps a writer waiting: records go
// through a queue, and one that finds it full is dropped and counted. It connects again for as long as it lives. A connection
// that breaks may lose or repeat a little of what was under way. Safe for concurrent use; Run must be running.
type Logstash struct {
	addr  string
	queue chan []byte
	log   *slog.Logger

	unsent  []byte // what a broken connection did not take; Run's own
	unsentN int64  // its records

	sent, dropped atomic.Int64
	connected     atomic.Bool
	descs         [3]*prometheus.Desc
}

// The sink's times.
const (
	dialTimeout = 5 * time.Second
	sendTimeout = 10 * time.Second // then the connection counts as broken
	firstPause  = time.Second      // before it connects again; doubles
	longPause   = 30 * time.Second
	flushTime   = time.Second // at the end
)

// batchBytes is about how much is sent with one write.
const batchBytes = 64 << 10

// NewLogstash prepares for the input at addr, host:port, with room for so many waiting records. log is told when the input is
// away and back, once each, and must not lead here.
func NewLogstash(addr string, queue int, log *slog.Logger) *Logstash {
	describe := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &Logstash{addr: addr, queue: make(chan []byte, queue), log: log, descs: [3]*prometheus.Desc{
		describe("msgx_logstash_sent_total", "Log records handed to the connection to Logstash."),
		describe("msgx_logstash_dropped_total", "Log records that were not sent to Logstash: the queue was full, or the end came."),
		describe("msgx_logstash_connected", "1 while there is a connection to Logstash, else 0."),
	}}
}

// Handler makes the records, as Logstash's own encoders name their parts; least is the least level.
func (l *Logstash) Handler(least slog.Leveler, service string) slog.Handler {
	names := map[string]string{slog.TimeKey: "@timestamp", slog.MessageKey: "message"}
	return slog.NewJSONHandler(l, &slog.HandlerOptions{Level: least, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		a = utc(groups, a)
		if name, ours := names[a.Key]; ours && len(groups) == 0 {
			a.Key = name
		}
		return a
	}}).WithAttrs([]slog.Attr{slog.String("service", service), slog.String("@version", "1")})
}

// Write takes one record. It never waits and never fails.
func (l *Logstash) Write(record []byte) (int, error) {
	select {
	case l.queue <- append([]byte(nil), record...): // the handler uses its buffer again
	default:
		l.dropped.Add(1)
	}
	return len(record), nil
}

// Run sends until ctx ends, and then for a moment more what still waits.
func (l *Logstash) Run(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; {
		c, err := l.connect(ctx)
		if err == nil {
			pause = firstPause
			err = l.send(ctx, c)
			_ = c.Close()
			l.connected.Store(false)
		}
		if ctx.Err() != nil {
			break
		}
		l.log.WarnContext(ctx, "logstash away", "addr", l.addr, "error", err.Error(), "retry_in", pause.String(), "dropped", l.dropped.Load())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
	l.flush(context.WithoutCancel(ctx))
}

// line is a connection, and the one that notices when the other end closes it: Logstash never says anything.
type line struct {
	net.Conn
	gone chan struct{}
}

func (l *Logstash) connect(ctx context.Context) (*line, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	c := &line{conn, make(chan struct{})}
	go func() {
		defer close(c.gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	l.connected.Store(true)
	l.log.InfoContext(ctx, "logstash connected", "addr", l.addr, "dropped", l.dropped.Load())
	return c, nil
}

// errGone says that the other end closed the connection.
var errGone = errors.New("the other end closed the connection")

// send sends what comes until ctx ends or the connection breaks.
func (l *Logstash) send(ctx context.Context, c *line) error {
	for {
		if l.unsentN == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-c.gone:
				return errGone
			case record := <-l.queue:
				l.unsent, l.unsentN = append(l.unsent[:0], record...), 1
			}
		}
		l.gather()
		_ = c.SetWriteDeadline(time.Now().Add(sendTimeout))
		stop := context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Now()) }) // the end does not wait for a stalled one
		err := l.write(c)
		stop()
		if err != nil {
			return err
		}
	}
}

// gather adds what waits to what is unsent, up to a batch.
func (l *Logstash) gather() {
	for len(l.unsent) < batchBytes {
		select {
		case next := <-l.queue:
			l.unsent = append(l.unsent, next...)
			l.unsentN++
		default:
			return
		}
	}
}

// write sends what is unsent.
func (l *Logstash) write(c net.Conn) error {
	if _, err := c.Write(l.unsent); err != nil {
		return err
	}
	l.sent.Add(l.unsentN)
	l.unsent, l.unsentN = l.unsent[:0], 0
	return nil
}

// flush sends what waits at the end, as far as it goes in flushTime; the rest is dropped.
func (l *Logstash) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	defer func() { l.dropped.Add(l.unsentN + int64(len(l.queue))) }()
	if l.gather(); l.unsentN == 0 {
		return
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetWriteDeadline(deadline)
	for l.unsentN > 0 && l.write(conn) == nil {
		l.gather()
	}
}

// Describe is prometheus.Collector's.
func (l *Logstash) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range l.descs {
		ch <- d
	}
}

// Collect is prometheus.Collector's.
func (l *Logstash) Collect(ch chan<- prometheus.Metric) {
	connected := map[bool]float64{true: 1}[l.connected.Load()]
	ch <- prometheus.MustNewConstMetric(l.descs[0], prometheus.CounterValue, float64(l.sent.Load()))
	ch <- prometheus.MustNewConstMetric(l.descs[1], prometheus.CounterValue, float64(l.dropped.Load()))
	ch <- prometheus.MustNewConstMetric(l.descs[2], prometheus.GaugeValue, connected)
}
