package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// What Check may find wrong for good: somebody must do something.
var (
	ErrTooOld  = errors.New("the broker does not know InitProducerId: it is too old to refuse a repeated batch")
	ErrNoTopic = errors.New("there is no such topic")
)

// Check says whether records could be sent now: brokers answer, know idempotent producers and let us be one, and the topic is
// there with a leader for every partition. It makes a missing topic if so configured. The error is an outage and names the topic.
func (p *Producer) Check(ctx context.Context) error {
	_, err := visit(ctx, p, func(l *link) (struct{}, error) {
		if err := p.prepare(l); err != nil {
			return struct{}{}, err
		}
		if err := p.checkIdentity(l); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.checkLeaders(l)
	})
	return outage("check kafka", err)
}

// visit runs call beside what is being sent, one at a time, so that calls that hang cannot pile up.
func visit[T any](ctx context.Context, p *Producer, call func(*link) (T, error)) (T, error) {
	var none T
	if err := hold(ctx, p.checking); err != nil {
		return none, fmt.Errorf("the brokers have not answered the question before: %w", err)
	}
	l, err := p.connected(ctx)
	if err != nil {
		release(p.checking)
		return none, err
	}
	return await(ctx, l, func() (T, error) {
		defer release(p.checking)
		return call(l)
	})
}

// prepare is what must be true of brokers and topic before anything is sent.
func (p *Producer) prepare(l *link) error {
	if err := l.checkVersions(p.topic); err != nil {
		return err
	}
	err := l.client.RefreshMetadata(p.topic)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) && p.cfg.CreateTopics {
		err = p.create(l)
	}
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		return fmt.Errorf("topic %s: %w: %w", p.topic, ErrNoTopic, err)
	}
	if err != nil && !errors.Is(err, sarama.ErrLeaderNotAvailable) { // the other partitions may go on
		return fmt.Errorf("topic %s: %w", p.topic, err)
	}
	return nil
}

// checkIdentity asks for a producer identity once a connection, for each asking uses one up. It is no condition for sending:
// whoever has one goes on while brokers have none to give.
func (p *Producer) checkIdentity(l *link) error {
	if l.able.Load() {
		return nil
	}
	_, err := l.enlist(p.topic)
	return err
}

func (p *Producer) checkLeaders(l *link) error {
	partitions, err := l.client.Partitions(p.topic)
	if err != nil {
		return fmt.Errorf("partitions of topic %s: %w", p.topic, err)
	}
	for _, n := range partitions {
		if _, err := l.client.Leader(p.topic, n); err != nil {
			return fmt.Errorf("topic %s, partition %d: %w", p.topic, n, err)
		}
	}
	return nil
}

func (p *Producer) create(l *link) error {
	admin, err := sarama.NewClusterAdminFromClient(l.client) // closing it would close the link's client
	if err != nil {
		return err
	}
	detail := &sarama.TopicDetail{NumPartitions: p.cfg.Partitions, ReplicationFactor: p.cfg.Replication}
	if p.topic == p.cfg.SchdTopic() { // what is there for good must not go with age
		compact := "compact"
		detail.ConfigEntries = map[string]*string{"cleanup.policy": &compact}
	}
	err = admin.CreateTopic(p.topic, detail, false)
	if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return fmt.Errorf("create: %w", err)
	}
	if err == nil {
		p.log.Info("kafka topic created", "partitions", p.cfg.Partitions)
	}
	return p.appeared(l)
}

// appeared waits for a topic just made: brokers know of it a little later than the one that made it.
func (p *Producer) appeared(l *link) (err error) {
	const looks, pause = 20, 100 * time.Millisecond
	for range looks {
		if err = l.client.RefreshMetadata(p.topic); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return err
		}
		<-time.After(pause)
	}
	return err
}
