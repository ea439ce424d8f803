package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/IBM/sarama"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
)

// eventIDHeader carries the event id of every record (contract §5).
const eventIDHeader = "event-id"

// Tail reads the last n records of each partition and gives the place of each event among them, the first when it is there
// twice. It fails with fault.Unsupported when we may not read the topic, else with an outage. Partitions that cannot be read
// to their end while others can get nothing sent until a later Tail has read them.
func (p *Producer) Tail(ctx context.Context, n int) (map[int64]outbox.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	t, err := visit(ctx, p, func(l *link) (tail, error) {
		t, err := l.tail(ctx, p.topic, int64(n))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known = t
		if err != nil {
			p.known = tail{} // whoever may not read at all sends all the same
		}
		return t, err
	})
	if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		return nil, fault.Wrap(fault.Unsupported, "read the end of topic "+p.topic, err)
	}
	return t.places, outage("read the end of topic "+p.topic, err)
}

// tail is what is known of a topic's end.
type tail struct {
	places map[int64]outbox.Place // event id → the first place it has
	ends   map[int32]int64        // partition → offset behind its last record
	blind  map[int32]error        // partition → why it could not be read
}

// latest gives what the last Tail found.
func (p *Producer) latest() tail {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// tail fails when it could read no partition, or must not.
func (l *link) tail(ctx context.Context, topic string, n int64) (tail, error) {
	t := tail{places: make(map[int64]outbox.Place), ends: make(map[int32]int64), blind: make(map[int32]error)}
	partitions, err := l.client.Partitions(topic)
	if err != nil {
		return t, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, partition := range partitions {
		all.Go(func() {
			found, end, err := l.tailOf(ctx, topic, partition, n)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.blind[partition] = fmt.Errorf("partition %d: %w", partition, err)
				return
			}
			t.ends[partition] = end
			for id, offset := range found {
				t.places[id] = outbox.Place{Partition: partition, Offset: offset}
			}
		})
	}
	all.Wait()
	why := errors.Join(slices.Collect(maps.Values(t.blind))...)
	if len(t.blind) == len(partitions) || errors.Is(why, sarama.ErrTopicAuthorizationFailed) {
		return t, why
	}
	return t, nil
}

// tailOf reads one partition from n before its end to the end it has now.
func (l *link) tailOf(ctx context.Context, topic string, partition int32, n int64) (found map[int64]int64, end int64, err error) {
	if end, err = l.client.GetOffset(topic, partition, sarama.OffsetNewest); err != nil {
		return nil, 0, err
	}
	start, err := l.client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return nil, 0, err
	}
	found = make(map[int64]int64)
	err = l.scan(ctx, topic, partition, max(start, end-n), end, func(e entry) error {
		if id, ok := eventID(e.headers); ok {
			if _, twice := found[id]; !twice {
				found[id] = e.offset
			}
		}
		return nil
	})
	return found, end, err
}

func eventID(headers []*sarama.RecordHeader) (int64, bool) {
	for _, h := range headers {
		if string(h.Key) == eventIDHeader {
			id, err := strconv.ParseInt(string(h.Value), 10, 64)
			return id, err == nil
		}
	}
	return 0, false
}
