// Package health keeps what is known about the systems this process depends on, and answers /healthz and /readyz from it
// at once (contract §8.9). It looks by itself every few seconds; a request never waits for a look.
package health

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"msgexchange/http/problem"
)

// State is how something is.
type State string

// The closed set of states.
const (
	OK       State = "ok"
	Degraded State = "degraded" // works in part, or without something it will get back to by itself
	Down     State = "down"
)

// AllStates lists the states, best first.
func AllStates() []State { return []State{OK, Degraded, Down} }

// Check is what a look at one dependency found.
type Check struct {
	State     State     `json:"status"`
	Detail    string    `json:"detail,omitempty"` // what is wrong, in one sentence without secrets
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	TookMS    int64     `json:"tookMs"`
}

// Fine is the check that found nothing wrong.
func Fine() Check { return Check{State: OK} }

// Failed is the check that found the dependency away.
func Failed(detail string) Check { return Check{State: Down, Detail: detail} }

// Probe looks at one dependency.
type Probe struct {
	Name string
	// Critical ones take the process out of service when they are down; without the others it can still answer queries and
	// take over later.
	Critical bool
	// Look must end with its context. State and Detail are its to set.
	Look func(ctx context.Context) Check
}

// The pace: a look every 2 s, ended after 1.5 s; a result nobody has renewed for 10 s is none.
const (
	lookEvery   = 2 * time.Second
	lookTimeout = 1500 * time.Millisecond
	staleAfter  = 10 * time.Second
)

// Cache holds the last result of each probe. Safe for concurrent use.
type Cache struct {
	probes []Probe
	now    func() time.Time

	mu   sync.Mutex
	last map[string]Check
}

// New makes a cache in which everything is down until Run has looked.
func New(now func() time.Time, probes ...Probe) *Cache {
	c := &Cache{probes: probes, now: now, last: map[string]Check{}}
	for _, p := range probes {
		c.last[p.Name] = Check{State: Down, Detail: "not looked at yet", CheckedAt: now()}
	}
	return c
}

// Run looks at everything until ctx ends, each probe at its own pace, so that one that hangs holds up none of the others.
func (c *Cache) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, p := range c.probes {
		g.Go(func() error {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			for ctx.Err() == nil {
				c.look(ctx, p)
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (c *Cache) look(ctx context.Context, p Probe) {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	start := c.now()
	check := guarded(bounded, p)
	if ctx.Err() != nil {
		return // stopping: what the probe says is about us
	}
	check.CheckedAt = c.now()
	check.TookMS = check.CheckedAt.Sub(start).Milliseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[p.Name] = check
}

func guarded(ctx context.Context, p Probe) (check Check) {
	defer func() {
		if r := recover(); r != nil {
			check = Failed(fmt.Sprintf("the look itself failed: %v", r))
		}
	}()
	return p.Look(ctx)
}

// Report is what /readyz answers.
type Report struct {
	Status State            `json:"status"`
	Checks map[string]Check `json:"checks"`
}

// Report sums the last results up: down when a critical dependency is, degraded when anything else is not ok.
func (c *Cache) Report() Report {
	c.mu.Lock()
	r := Report{Status: OK, Checks: maps.Clone(c.last)}
	c.mu.Unlock()
	for _, p := range c.probes {
		check := r.Checks[p.Name]
		if age := c.now().Sub(check.CheckedAt); age > staleAfter {
			check.State, check.Detail = Down, fmt.Sprintf("no answer for %s", age.Round(time.Second))
			r.Checks[p.Name] = check
		}
		switch {
		case check.State == Down && p.Critical:
			r.Status = Down
		case check.State != OK && r.Status == OK:
			r.Status = Degraded
		}
	}
	return r
}

// Live answers /healthz: the process runs and serves.
func (c *Cache) Live(g *gin.Context) error {
	return problem.WriteJSON(g.Writer, http.StatusOK, map[string]State{"status": OK})
}

// Ready answers /readyz: 503 when down, and with ?strict also when degraded.
func (c *Cache) Ready(g *gin.Context) error {
	r := c.Report()
	status := http.StatusOK
	if r.Status == Down || r.Status == Degraded && strict(g) {
		status = http.StatusServiceUnavailable
	}
	return problem.WriteJSON(g.Writer, status, r)
}

// strict is ?strict in any form but a plain no: a probe that asks for it in other words must not go without it unnoticed.
func strict(g *gin.Context) bool {
	said, asked := g.GetQuery("strict")
	yes, err := strconv.ParseBool(said)
	return asked && (yes || err != nil)
}
