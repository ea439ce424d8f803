package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"msgexchange/jobs/outbox"
)

// Producer sends the records of one topic. Safe for concurrent use; batches go out one after the other.
// It connects when it is first used and again whenever it has to.
type Producer struct {
	cfg   Config
	lib   *sarama.Config
	topic string
	log   *slog.Logger

	sending  chan struct{} // held by the one Send under way
	dialing  chan struct{} // held while a link is made
	checking chan struct{} // held by the one Check or Tail under way, even when nobody waits for it any more
	id       identity      // of the holder of sending
	count    int           // of partitions at the last Send; of the holder of sending

	mu    sync.Mutex
	link  *link // nil until needed
	known tail  // what the last Tail found
	left  *link // the link given up last; no other is made until it is closed, so that they cannot pile up
	shut  bool
}

// New makes the producer of a topic. It reads the TLS files and talks to nobody.
func New(cfg Config, topic string, log *slog.Logger) (*Producer, error) {
	lib, err := cfg.sarama()
	if err != nil {
		return nil, err
	}
	return &Producer{
		cfg: cfg, lib: lib, topic: topic, log: log.With("topic", topic),
		sending: make(chan struct{}, 1), dialing: make(chan struct{}, 1), checking: make(chan struct{}, 1),
	}, nil
}

// Send puts records into the topic, in the given order within each partition, and says of each what became of it. After a
// record that is not Acked none of the same partition is. It returns when all is settled, at the end of ctx or after
// send-timeout, whatever the brokers do; what is then in doubt is Waiting and may be in the topic all the same.
// Records that are Waiting may be sent again together with their successors: a repetition lies behind them in order.
// Once another seat's records are in a partition, those of a seat before are not appended there any more.
func (p *Producer) Send(ctx context.Context, seat Seat, records []outbox.Record) []outbox.Result {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	results := make([]outbox.Result, len(records))
	if err := p.send(ctx, seat, records, results); err != nil {
		err = outage("send to kafka", err)
		for i := range results {
			if results[i].Fate == outbox.Waiting {
				results[i].Err = err
			}
		}
	}
	return results
}

func (p *Producer) send(ctx context.Context, seat Seat, records []outbox.Record, results []outbox.Result) error {
	if err := hold(ctx, p.sending); err != nil {
		return fmt.Errorf("another batch is on its way: %w", err)
	}
	defer release(p.sending)
	l, err := p.connected(ctx)
	if err != nil {
		return err
	}
	s := &session{
		broker: session2link{p, l, seat}, id: &p.id, log: p.log, now: time.Now, records: records, results: results, known: p.latest(),
	}
	p.id.sit(seat)
	partitions, err := await(ctx, l, func() ([]int32, error) { return l.client.Partitions(p.topic) })
	if err != nil {
		p.leave(ctx, l)
		return fmt.Errorf("partitions of topic %s: %w", p.topic, err)
	}
	p.noteCount(len(partitions))
	pick := sarama.NewMurmur2Partitioner(p.topic)
	err = s.spread(func(key string) (int32, error) {
		n, err := pick.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, int32(len(partitions)))
		return partitions[n], err
	})
	if err != nil {
		return err
	}
	s.run(ctx)
	p.leave(ctx, l)
	return nil
}

// noteCount tells when the topic has more or fewer partitions than at the Send before: keys have moved (docs/consumers.md).
// Only the holder of sending calls it.
func (p *Producer) noteCount(n int) {
	if p.count != 0 && p.count != n {
		p.log.Warn("kafka partitions changed", "before", p.count, "partitions", n)
	}
	p.count = n
}

// leave gives the link up when the time ran out on it: a call may hang there for ever.
func (p *Producer) leave(ctx context.Context, l *link) {
	if ctx.Err() != nil {
		p.drop(l)
	}
}

// connected gives the link in use, or makes one to brokers fit for us.
func (p *Producer) connected(ctx context.Context) (*link, error) {
	if err := hold(ctx, p.dialing); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer release(p.dialing)
	p.mu.Lock()
	l, left, shut := p.link, p.left, p.shut
	p.mu.Unlock()
	switch {
	case shut:
		return nil, errors.New("the producer is closed")
	case l != nil:
		return l, nil
	case left != nil:
		select {
		case <-left.closed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the connection given up before is still closing: %w", context.Cause(ctx))
		}
	}
	l, err := newLink(p.cfg.Brokers, p.lib)
	if err != nil {
		return nil, err
	}
	_, err = await(ctx, l, func() (struct{}, error) { return struct{}{}, p.prepare(l) })
	if err != nil {
		p.drop(l)
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return l, p.keep(l)
}

func (p *Producer) keep(l *link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		l.close()
		return errors.New("the producer is closed")
	}
	p.link = l
	return nil
}

// drop closes a link in the background.
func (p *Producer) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link = nil
	}
	p.left = l
	l.close()
}

// Close ends the producer and waits for its connections until ctx ends.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	l := p.link
	p.shut, p.link = true, nil
	if l != nil {
		l.close()
		p.left = l
	}
	left := p.left
	p.mu.Unlock()
	if left == nil {
		return nil
	}
	select {
	case <-left.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold takes a place that one may have at a time.
func hold(ctx context.Context, place chan struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(place chan struct{}) { <-place }

// session2link lets a session use a link without waiting longer than its ctx.
type session2link struct {
	*Producer
	link *link
	seat Seat
}

func (b session2link) identify(ctx context.Context) (outbox.Term, error) {
	offer, err := await(ctx, b.link, func() (outbox.Term, error) { return b.link.identify(b.topic) })
	if err != nil {
		return outbox.Term{}, err
	}
	return b.seat.Claim(ctx, offer)
}

func (b session2link) produce(ctx context.Context, batches map[int32]*sarama.RecordBatch) (map[int32]answer, error) {
	return await(ctx, b.link, func() (map[int32]answer, error) {
		return b.link.produce(ctx, b.topic, b.lib.Producer.Timeout, batches), nil
	})
}

func (b session2link) refresh(ctx context.Context) error {
	_, err := await(ctx, b.link, func() (struct{}, error) { return struct{}{}, b.link.client.RefreshMetadata(b.topic) })
	return err
}
