//go:build demo

package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"msgexchange/deploy/simulator"
)

// introduce says what runs where.
func (w *world) introduce(out io.Writer) {
	base := "http://" + w.listener.Addr().String()
	fmt.Fprintf(out, `msgexchange demo: a simulated airport, seed %d

  console     %[2]s/
  flights     %[2]s/all/flights
  operation   %[2]s/ops/summary, %[2]s/metrics, %[2]s/readyz
  requests    %[2]s/ops/requests, answered by the simulated airport, some late, twice or never
  reference   %[2]s/refdata, %[2]s/refdata/ABDG
  jobs        %[2]s/riverui/
  operator    Authorization: Bearer %[3]s, or HTTP Basic with user %[4]s and the token as password
  Kafka       %[5]s, topics %[6]s and %[7]s
  mailbox     %[8]s
  PostgreSQL  %[9]s
  log         %[10]s

To practise docs/runbook.md, in another terminal:
  . %[11]s
  msgexchange simulate --fault poison     (or: %[12]s)

`, w.Seed, base, w.token, operator, strings.Join(w.cfg.Kafka.Brokers, ","), w.cfg.Kafka.MsgTopic(), w.cfg.Kafka.SchdTopic(),
		w.mailbox.dsn, w.cfg.PG.DSN, w.logFile, w.shellFile, incidents())
}

// incidents names them all but the first.
func incidents() string {
	var names []string
	for _, i := range simulator.AllIncidents()[1:] {
		names = append(names, string(i))
	}
	return strings.Join(names, ", ")
}

// reading is what the status line shows.
type reading struct {
	at         time.Time
	written    int   // rows in the mailbox
	marked     int   // of them
	watermark  int64 // W
	head       int64 // the smallest unfinished message, 0 when there is none
	unfinished int
	events     int // created
	waiting    int // not sent yet
}

// readState is served by the partial indexes and event_span, so that it costs the same after a day.
const readState = `
SELECT COALESCE((SELECT committed_up_to FROM inbox_cursor WHERE lane = $1), 0),
	COALESCE((SELECT min(msg_id) FROM proc_state WHERE state IN ('PENDING', 'FAILED')), 0),
	(SELECT count(*) FROM proc_state WHERE state IN ('PENDING', 'FAILED')),
	(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM msg_event_event_id_seq),
	(SELECT COALESCE(sum(amount), 0) FROM event_span WHERE state = 'PENDING')`

func (w *world) read(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	r := reading{at: time.Now()}
	err := w.pool.QueryRow(ctx, readState, w.cfg.Lane).Scan(&r.watermark, &r.head, &r.unfinished, &r.events, &r.waiting)
	r.written, r.marked = w.mailbox.marked()
	return r, err
}

// report writes the status line until ctx ends.
func (w *world) report(ctx context.Context) {
	period := 5 * time.Second
	if w.Terminal {
		period = time.Second
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	start := time.Now()
	before := reading{at: start}
	for {
		select {
		case <-ctx.Done():
			if w.Terminal {
				fmt.Fprintln(w.Err)
			}
			return
		case <-tick.C:
		}
		now, err := w.read(ctx)
		if err != nil {
			continue // the next one tells
		}
		line := now.line(before, now.at.Sub(start), w.Duration)
		if w.Terminal {
			const back, clearRest = "\r", "\x1b[K"
			fmt.Fprint(w.Err, back, line, clearRest)
		} else {
			fmt.Fprintln(w.Err, line)
		}
		before = now
	}
}

// line is the status in one line; the rate is that since the reading before.
func (r reading) line(before reading, elapsed, duration time.Duration) string {
	progress := elapsed.Round(time.Second).String()
	if duration > 0 {
		progress += "/" + duration.String()
	}
	processed, was := r.watermark-int64(r.unfinished), before.watermark-int64(before.unfinished)
	rate := float64(processed-was) / r.at.Sub(before.at).Seconds()
	head := "idle"
	if r.head > 0 {
		head = fmt.Sprint(r.head)
	}
	return fmt.Sprintf("%s  written %d  processed %d (%.1f/s)  head %s  W %d  events %d, %d waiting  marks %d",
		progress, r.written, processed, rate, head, r.watermark, r.events, r.waiting, r.marked)
}
