package workers

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"msgexchange/jobs"
)

func queueOfRole() river.QueueConfig { return river.QueueConfig{MaxWorkers: slotsPerRole} }

// How long River has to see that a queue is being left, and to leave one that nothing runs on.
const (
	leaveTimeout = 50 * time.Millisecond
	leftTimeout  = 200 * time.Millisecond
)

// StopFetching is drain.Fetcher's. River's Remove stops the fetching first and then waits for what runs, which it is not given the
// time for. Beside us, because River lets nobody in while it stops the client, and that waits for the run that calls this.
func (p *Pod) StopFetching(role jobs.Role) {
	done := make(chan struct{})
	p.leaving.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		_ = p.client.Queues().Remove(ctx, string(role)) // the run under way is ours: its time is always too short
	})
	select {
	case <-done:
	case <-time.After(2 * leaveTimeout):
	}
}

// StartFetching is drain.Fetcher's.
func (p *Pod) StartFetching(role jobs.Role) error {
	ctx, cancel := context.WithTimeout(context.Background(), leftTimeout)
	defer cancel()
	var gone *river.QueueNotFoundError
	if err := p.client.Queues().Remove(ctx, string(role)); err != nil && !errors.As(err, &gone) {
		return err
	}
	return p.client.Queues().Add(string(role), queueOfRole())
}
