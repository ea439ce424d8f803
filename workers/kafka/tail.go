package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
)

// eventIDHeader carries the event id of every record (contract §5).
const eventIDHeader = "event-id"

// Tail reads the last n records of each partition and gives the place of each event among them, the first when it is there
// twice. It fails with fault.Unsupported when we may not read the topic, else with an outage. What a broker keeps back for
// longer than request-timeout is taken for not there: a topic may end in marks that are no records. Partitions that cannot
// be read while others can get nothing sent until a later Tail has read them.
func (p *Producer) Tail(ctx context.Context, n int) (map[int64]outbox.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	places, err := visit(ctx, p, func(l *link) (map[int64]outbox.Place, error) {
		places, blind, err := l.tail(ctx, p.topic, int64(n), p.cfg.RequestTimeout)
		if err != nil {
			blind = nil // whoever may not read at all sends all the same
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.blind = blind
		return places, err
	})
	if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		return nil, fault.Wrap(fault.Unsupported, "read the end of topic "+p.topic, err)
	}
	return places, outage("read the end of topic "+p.topic, err)
}

// unread gives the partitions the last Tail could not read.
func (p *Producer) unread() map[int32]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blind
}

// tail gives what was found, and why of the partitions it could not read. It fails when it could read none, or must not.
func (l *link) tail(ctx context.Context, topic string, n int64, patience time.Duration) (places map[int64]outbox.Place, blind map[int32]error, err error) {
	partitions, err := l.client.Partitions(topic)
	if err != nil {
		return nil, nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(l.client) // closing it leaves the client open
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	places, blind = make(map[int64]outbox.Place), make(map[int32]error)
	for _, partition := range partitions {
		all.Go(func() {
			err := l.tailOf(ctx, consumer, topic, partition, n, patience, func(id int64, at outbox.Place) {
				mu.Lock()
				defer mu.Unlock()
				if _, twice := places[id]; !twice {
					places[id] = at
				}
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				blind[partition] = err
			}
		})
	}
	all.Wait()
	why := errors.Join(slices.Collect(maps.Values(blind))...)
	if len(blind) == len(partitions) || errors.Is(why, sarama.ErrTopicAuthorizationFailed) {
		err = why
	}
	return places, blind, errors.Join(err, consumer.Close())
}

// tailOf reads one partition from n before its end to the end it has now.
func (l *link) tailOf(
	ctx context.Context, c sarama.Consumer, topic string, partition int32, n int64, patience time.Duration, found func(int64, outbox.Place),
) error {
	end, err := l.client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return fmt.Errorf("partition %d: %w", partition, err)
	}
	start, err := l.client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return fmt.Errorf("partition %d: %w", partition, err)
	}
	if start = max(start, end-n); start >= end {
		return nil
	}
	records, err := c.ConsumePartition(topic, partition, start)
	if err != nil {
		return fmt.Errorf("partition %d: %w", partition, err)
	}
	defer func() { _ = records.Close() }()
	for {
		select {
		case m, ok := <-records.Messages():
			if !ok {
				return fmt.Errorf("partition %d: %w", partition, sarama.ErrOffsetOutOfRange)
			}
			if id, ok := eventID(m); ok {
				found(id, outbox.Place{Partition: partition, Offset: m.Offset})
			}
			if m.Offset >= end-1 {
				return nil
			}
		case err := <-records.Errors(): // nil when closed, which Messages then is too
			if err != nil {
				return fmt.Errorf("partition %d: %w", partition, err)
			}
		case <-time.After(patience):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("partition %d: %w", partition, context.Cause(ctx))
		}
	}
}

func eventID(m *sarama.ConsumerMessage) (int64, bool) {
	for _, h := range m.Headers {
		if string(h.Key) == eventIDHeader {
			id, err := strconv.ParseInt(string(h.Value), 10, 64)
			return id, err == nil
		}
	}
	return 0, false
}
