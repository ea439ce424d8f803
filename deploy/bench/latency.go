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
		took, bare, err := b.steadily(ctx)
		if err != nil {
			return err
		}
		mb, err := memory(pod, "VmRSS")
		if err != nil {
			return err
		}
		p50, p99 := quantile(took, 0.5), quantile(took, 0.99)
		const goal50, goal99, goalMB = 40 * time.Millisecond, 100 * time.Millisecond, 120
		bare50, bare99 := quantile(bare, 0.5), quantile(bare, 0.99)
		b.table.limit("two commits in PostgreSQL and a record to Kafka, by hand, p50 and p99", "%.1f ms and %.1f ms", ms(bare50), ms(bare99))
		b.table.goal(fmt.Sprintf("%d messages/s, mailbox commit to Kafka record, p50", perSecond), p50 <= goal50, "≤ 40 ms", "%.1f ms = %.1f × by hand",
			ms(p50), p50.Seconds()/bare50.Seconds())
		b.table.goal("the same, p99", p99 <= goal99, "≤ 100 ms", "%.1f ms of %d messages = %.1f × by hand", ms(p99), len(took), p99.Seconds()/bare99.Seconds())
		b.table.goal("resident memory of the process at that rate", mb <= goalMB, "≤ 120 MB", "%.0f MB", mb)
		return nil
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// steadily writes one message after the other and gives how long each took, and, in turns with them, how long the least
// takes that any such program must do.
func (b *bench) steadily(ctx context.Context) (took, bare []time.Duration, err error) {
	n := int(b.steady.Seconds() * perSecond)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.world.Broker.ListenAddrs()...), kgo.ConsumeTopics("msg"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	var first int64
	if err := b.world.Mailbox.DB().QueryRowContext(ctx, "SELECT coalesce(max(CMINMSGS_ID), 0) FROM cminmsgs").Scan(&first); err != nil {
		return nil, nil, err
	}
	committed, seen := make([]time.Time, n), make([]time.Time, n)
	var g errgroup.Group
	g.Go(func() error { return watch(ctx, client, first, seen) })
	byHand, done, err := b.bareSteps(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	tick := time.NewTicker(time.Second / (2 * perSecond))
	defer tick.Stop()
	for i := range n {
		<-tick.C
		d, err := byHand()
		if err != nil {
			return nil, nil, err
		}
		bare = append(bare, d)
		<-tick.C
		if committed[i], err = b.put(ctx, flop(b.next(), 1+i%backlogFlights, i)); err != nil {
			return nil, nil, err
		}
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	took = make([]time.Duration, n)
	for i := range took {
		took[i] = seen[i].Sub(committed[i])
	}
	return took, bare, nil
}

// bareSteps gives what commits one row in PostgreSQL twice and then puts one record into Kafka, and says how long that took.
func (b *bench) bareSteps(ctx context.Context) (step func() (time.Duration, error), done func(), err error) {
	if _, err := b.world.Pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS bare_step (n bigint)"); err != nil {
		return nil, nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.world.Broker.ListenAddrs()...), kgo.DefaultProduceTopic(copyTopic), kgo.ProducerLinger(0))
	if err != nil {
		return nil, nil, err
	}
	return func() (time.Duration, error) {
		at := time.Now()
		for range 2 {
			if _, err := b.world.Pool.Exec(ctx, "INSERT INTO bare_step VALUES (1)"); err != nil {
				return 0, err
			}
		}
		err := client.ProduceSync(ctx, kgo.StringRecord("bare")).FirstErr()
		return time.Since(at), err
	}, client.Close, nil
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
