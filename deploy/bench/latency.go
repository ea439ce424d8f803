package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"msgexchange/deploy/systemtest/rig"
)

// perSecond is the steady rate of design section 11.
const perSecond = 20

// latency measures the way from the commit in the mailbox until a consumer of Kafka has the record, at a steady rate, and
// what memory the process then holds.
func latency(ctx context.Context, b *bench) error {
	return b.with(ctx, func(pod *rig.Pod) error {
		if _, err := b.put(ctx, schedules(b.next(), backlogFlights)); err != nil {
			return err
		}
		if err := b.drained(ctx); err != nil {
			return err
		}
		took, err := b.steadily(ctx)
		if err != nil {
			return err
		}
		mb, err := memory(pod, "VmRSS")
		if err != nil {
			return err
		}
		p50, p99 := quantile(took, 0.5), quantile(took, 0.99)
		const goal50, goal99, goalMB = 40 * time.Millisecond, 100 * time.Millisecond, 120
		b.table.goal(fmt.Sprintf("%d messages/s, mailbox commit to Kafka record, p50", perSecond), p50 <= goal50, "≤ 40 ms", "%.1f ms", ms(p50))
		b.table.goal("the same, p99", p99 <= goal99, "≤ 100 ms", "%.1f ms of %d messages", ms(p99), len(took))
		b.table.goal("resident memory of the process at that rate", mb <= goalMB, "≤ 120 MB", "%.0f MB", mb)
		return nil
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// steadily writes one message after the other and gives how long each took. A message is known by the value it sets.
func (b *bench) steadily(ctx context.Context) ([]time.Duration, error) {
	n := int(b.steady.Seconds() * perSecond)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.world.Broker.ListenAddrs()...), kgo.ConsumeTopics("msg"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var first int64
	if err := b.world.Mailbox.DB().QueryRowContext(ctx, "SELECT coalesce(max(CMINMSGS_ID), 0) FROM cminmsgs").Scan(&first); err != nil {
		return nil, err
	}
	committed, seen := make([]time.Time, n), make([]time.Time, n)
	var g errgroup.Group
	g.Go(func() error { return watch(ctx, client, first, seen) })
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		if committed[i], err = b.put(ctx, flop(b.next(), 1+i%backlogFlights, i)); err != nil {
			return nil, err
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	took := make([]time.Duration, n)
	for i := range took {
		took[i] = seen[i].Sub(committed[i])
	}
	return took, nil
}

// watch notes when each of the messages after the first id is there.
func watch(ctx context.Context, client *kgo.Client, first int64, seen []time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for left := len(seen); left > 0; {
		fetches := client.PollFetches(ctx)
		at := time.Now()
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			id, err := strconv.ParseInt(rig.Header(r, "message-id"), 10, 64)
			if err != nil {
				return err
			}
			i := id - first - 1
			if i >= 0 && i < int64(len(seen)) && seen[i].IsZero() {
				seen[i] = at
				left--
			}
		}
	}
	return nil
}

// idle counts what pods with nothing to do ask of the shared mailbox.
func idle(ctx context.Context, b *bench) error {
	const pods = 3
	questions := func() (n int, err error) {
		var name string
		err = b.world.Mailbox.DB().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Com_select'").Scan(&name, &n)
		return n, err
	}
	return b.with(ctx, func(*rig.Pod) error {
		return b.with(ctx, func(*rig.Pod) error {
			return b.with(ctx, func(*rig.Pod) error {
				const settle, window, poll = 5 * time.Second, 20 * time.Second, time.Second
				if err := sleep(ctx, settle); err != nil {
					return err
				}
				before, err := questions()
				if err != nil {
					return err
				}
				if err := sleep(ctx, window); err != nil {
					return err
				}
				after, err := questions()
				rate := float64(after-before) / (float64(window) / float64(poll))
				b.table.goal(fmt.Sprintf("idle load on the mailbox, %d pods", pods), rate <= 1.25, "≤ 1 query a poll", "%.2f queries a poll interval", rate)
				return err
			})
		})
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
