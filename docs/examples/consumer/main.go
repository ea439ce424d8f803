// Command consumer shows how to read the topics of msgexchange (docs/consumers.md). It reads both from the start, prints each
// change once and, every second, how many flights there are:
//
//	go run ./docs/examples/consumer 127.0.0.1:9092
//
// It keeps nothing. Whoever does, commits offsets after what was made of the records, in one transaction if possible.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: consumer HOST:PORT[,HOST:PORT]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Split(os.Args[1], ","), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, brokers []string, out io.Writer) error {
	c, err := sarama.NewConsumer(brokers, sarama.NewConfig())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	changes, err := read(ctx, c, "msg")
	if err != nil {
		return err
	}
	states, err := read(ctx, c, "schd")
	if err != nil {
		return err
	}
	return watch(ctx, changes, states, out)
}

// watch keeps a view of what comes. It is the only one that touches it.
func watch(ctx context.Context, changes, states <-chan *sarama.ConsumerMessage, out io.Writer) error {
	view := newView()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case m := <-changes:
			first, err := view.Change(plain(m))
			if err != nil {
				return err
			}
			if first {
				_, _ = fmt.Fprintf(out, "%s\n", m.Value)
			}
		case m := <-states:
			if _, err := view.State(plain(m)); err != nil {
				return err
			}
		case <-tick.C:
			_, _ = fmt.Fprintln(out, len(view.flights), "flights")
		case <-ctx.Done():
			return nil
		}
	}
}

// read gives the records of all partitions of a topic from the start, each partition's in order.
func read(ctx context.Context, c sarama.Consumer, topic string) (<-chan *sarama.ConsumerMessage, error) {
	partitions, err := c.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	out := make(chan *sarama.ConsumerMessage)
	for _, n := range partitions {
		p, err := c.ConsumePartition(topic, n, sarama.OffsetOldest)
		if err != nil {
			return nil, fmt.Errorf("topic %s, partition %d: %w", topic, n, err)
		}
		go func() {
			defer p.AsyncClose()
			for m := range p.Messages() {
				select {
				case out <- m:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return out, nil
}

func plain(m *sarama.ConsumerMessage) record {
	r := record{Key: string(m.Key), Value: m.Value, Headers: make(map[string]string, len(m.Headers))}
	for _, h := range m.Headers {
		r.Headers[string(h.Key)] = string(h.Value)
	}
	return r
}
