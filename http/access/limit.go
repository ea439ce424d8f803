package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxCallers bounds the memory of a Limiter; further callers share one bucket until others have gone quiet.
const maxCallers = 10_000

// Limiter gives each caller its own token bucket. Safe for concurrent use.
type Limiter struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
	rest    *rate.Limiter // of callers that found no room
	swept   time.Time
}

// NewLimiter allows perSecond requests a caller in the long run and burst at once. Zero perSecond means no limit.
func NewLimiter(perSecond float64, burst int) *Limiter {
	limit := rate.Limit(perSecond)
	if perSecond == 0 {
		limit = rate.Inf
	}
	return &Limiter{limit: limit, burst: burst, callers: map[string]*rate.Limiter{}, rest: rate.NewLimiter(limit, burst)}
}

// Allow takes one from the caller's bucket; false when it is empty.
func (l *Limiter) Allow(key string, now time.Time) bool {
	return l.limit == rate.Inf || l.bucket(key, now).AllowN(now, 1)
}

func (l *Limiter) bucket(key string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.callers[key]; ok {
		return b
	}
	if len(l.callers) >= maxCallers {
		l.sweep(now)
	}
	if len(l.callers) >= maxCallers {
		return l.rest
	}
	b := rate.NewLimiter(l.limit, l.burst)
	l.callers[key] = b
	return b
}

// sweep forgets the callers whose bucket is full again: a new one would be the same. At most once a second, since it looks
// at all of them.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Second {
		return
	}
	l.swept = now
	for key, b := range l.callers {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.callers, key)
		}
	}
}
