package kafka

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

// Read hands on every record that is in the topic when it is called, partition by partition, each in its order; a nil value
// is a tombstone. It needs the right to read the topic. Its errors are outages.
func Read(ctx context.Context, cfg Config, topic string, each func(key, value []byte) error) error {
	lib, err := cfg.sarama()
	if err != nil {
		return err
	}
	l, err := newLink(cfg.Brokers, lib)
	if err != nil {
		return outage("read topic "+topic, err)
	}
	defer l.close()
	_, err = await(ctx, l, func() (struct{}, error) { return struct{}{}, l.read(ctx, topic, each) })
	return outage("read topic "+topic, err)
}

func (l *link) read(ctx context.Context, topic string, each func(key, value []byte) error) error {
	partitions, err := l.client.Partitions(topic)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		if err := l.readPartition(ctx, topic, partition, each); err != nil {
			return fmt.Errorf("partition %d: %w", partition, err)
		}
	}
	return nil
}

func (l *link) readPartition(ctx context.Context, topic string, partition int32, each func(key, value []byte) error) error {
	start, err := l.client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	end, err := l.client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil {
		return err
	}
	return l.scan(ctx, topic, partition, start, end, func(e entry) error { return each(e.key, e.value) })
}
