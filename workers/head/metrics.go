package head

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// Metrics of the head worker, with the contract's names.
type Metrics struct {
	headAttempts prometheus.Gauge
	messages     *prometheus.CounterVec
	seconds      prometheus.Histogram
	duplicates   *prometheus.CounterVec
	loops        prometheus.Counter
	unmatched    *prometheus.CounterVec
}

// NewMetrics makes and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		headAttempts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "msgx_head_attempts", Help: "Attempts already made for the message at the head; above 1 it is in trouble.",
		}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "msgx_messages_total", Help: "Messages that reached a state, by state, error class and kind.",
		}, []string{"state", "class", "kind"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "msgx_process_seconds", Help: "Time one batch of messages took from being charged to being committed.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "msgx_duplicates_total", Help: "Messages whose identity was taken: duplicate (same body), content (another body, skipped), processed (another body, by policy), wrapped (the counter went round).",
		}, []string{"reuse"}),
		loops: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "msgx_codeshare_loops_total", Help: "Flights that were made children of themselves, over one master or several: they are not published while it lasts.",
		}),
		unmatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "msgx_answers_unmatched_total", Help: "Answers that came late, twice or unasked and were not applied, by kind.",
		}, []string{"kind"}),
	}
	reg.MustRegister(m.headAttempts, m.messages, m.seconds, m.duplicates, m.loops, m.unmatched)
	return m
}

// tell counts and logs a batch once it is committed: what did not become true is not told.
func (h *Head) tell(ctx context.Context, r run, took time.Duration) {
	done := 0
	for _, j := range r.judged {
		if j.reset {
			continue
		}
		done++
		kind := kindOf(j)
		h.metrics.messages.WithLabelValues(string(j.verdict.State), string(j.verdict.Class), kind).Inc()
		if j.reuse != message.ReuseNone {
			h.metrics.duplicates.WithLabelValues(string(j.reuse)).Inc()
		}
		for _, flid := range j.outcome.Loops {
			h.metrics.loops.Inc()
			h.log.WarnContext(ctx, "code-share loop", "msg_id", j.row.Pos.ID, "flid", flid, "trace_id", outbox.TraceID(j.row.Pos))
		}
		if j.skip == unmatchedResp {
			h.metrics.unmatched.WithLabelValues(kind).Inc()
		}
		h.tellOne(ctx, j, kind)
		h.tellReference(ctx, j)
	}
	h.log.InfoContext(ctx, "batch processed", "size", done, "events", r.events.Len(), "last_msg_id", r.judged[len(r.judged)-1].row.Pos.ID, "took_ms", took.Milliseconds())
}

// kindOf keeps the label set closed: kinds outside the catalogue share one name.
func kindOf(j judged) string {
	switch {
	case !hasMeta(j.msg):
		return "none"
	case j.msg.Spec == nil && j.msg.Ignored == "":
		return "other"
	default:
		return string(j.msg.Meta.Kind())
	}
}

func (h *Head) tellOne(ctx context.Context, j judged, kind string) {
	level := slog.LevelDebug
	switch {
	case j.verdict.State == message.Dead, j.reuse == message.ReuseContent:
		level = slog.LevelError
	case j.verdict.State == message.Failed, j.reuse != message.ReuseNone, j.skip == unmatchedResp:
		level = slog.LevelWarn
	}
	if !h.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.Int64("msg_id", j.row.Pos.ID), slog.String("trace_id", outbox.TraceID(j.row.Pos)), slog.String("kind", kind), slog.String("state", string(j.verdict.State)), slog.Int("attempt", j.row.Attempts),
	}
	if j.skip != "" {
		attrs = append(attrs, slog.String("skip_reason", j.skip))
	}
	if j.note != nil {
		attrs = append(attrs, slog.String("why", fault.Text(j.note)))
	}
	if j.err != nil {
		attrs = append(attrs, slog.String("class", string(fault.Of(j.err))), slog.String("error", fault.Text(j.err)))
	}
	h.log.LogAttrs(ctx, level, "message processed", attrs...)
}
