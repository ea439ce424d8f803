package workers

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet is how the log of River and of its UI reaches ours. River tells its producers' job counts at INFO every few seconds, for
// each queue: only WARN and worse come through. In an outage of PostgreSQL both tell at ERROR, again and again, what they go on
// trying; with us ERROR is what somebody must act on, and our own roles say what is away. So it is a WARN here, and each text
// once a minute.
type quiet struct {
	slog.Handler
	told *told
}

// Quiet makes of log what River and its UI are given.
func Quiet(log *slog.Logger) *slog.Logger {
	return slog.New(quiet{log.Handler(), &told{at: map[string]time.Time{}}})
}

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, slog.LevelWarn)
}

// Handle is slog.Handler's.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.told.first(r.Message, r.Time) {
		return nil
	}
	attrs := []any{"text", r.Message}
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	slog.New(q.Handler).WarnContext(ctx, "job queue in trouble", attrs...)
	return nil
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.told}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.told} }

// told remembers when each of their texts was last passed on; there are some dozens. Safe for concurrent use.
type told struct {
	mu sync.Mutex
	at map[string]time.Time
}

// toldAgain is after how long the same text is passed on again.
const toldAgain = time.Minute

func (t *told) first(text string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, known := t.at[text]; known && now.Sub(last) < toldAgain {
		return false
	}
	t.at[text] = now
	return true
}
