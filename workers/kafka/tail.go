package kafka

import (
	"context"
	"errors"
	"fmt"
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
// longer than request-timeout is taken for not there: a topic may end in marks that are no records.
func (p *Producer) Tail(ctx context.Context, n int) (map[int64]outbox.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	places, err := visit(ctx, p, func(l *link) (map[int64]outbox.Place, error) {
		return l.tail(ctx, p.topic, int64(n), p.cfg.RequestTimeout)
	})
	if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		return nil, fault.Wrap(fault.Unsupported, "read the end of topic "+p.topic, err)
	}
	return places, outage("read the end of topic "+p.topic, err)
}

func (l *link) tail(ctx context.Context, topic string, n int64, patience time.Duration) (map[int64]outbox.Place, error) {
	partitions, err := l.client.Partitions(topic)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(l.client) // closing it leaves the client open
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(map[int64]outbox.Place)
	errs := make([]error, len(partitions))
	for i, partition := range partitions {
		all.Go(func() {
			errs[i] = l.tailOf(ctx, consumer, topic, partition, n, patience, func(id int64, at outbox.Place) {
				mu.Lock()
				defer mu.Unlock()
				if _, twice := places[id]; !twice {
					places[id] = at
				}
			})
		})
	}
	all.Wait()
	return places, errors.Join(append(errs, consumer.Close())...)
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
