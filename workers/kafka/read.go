package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	_, err = await(ctx, l, func() (struct{}, error) { return struct{}{}, l.read(ctx, topic, cfg.RequestTimeout, each) })
	return outage("read topic "+topic, err)
}

func (l *link) read(ctx context.Context, topic string, patience time.Duration, each func(key, value []byte) error) error {
	partitions, err := l.client.Partitions(topic)
	if err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(l.client)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		if err := l.readPartition(ctx, consumer, topic, partition, patience, each); err != nil {
			return errors.Join(fmt.Errorf("partition %d: %w", partition, err), consumer.Close())
		}
	}
	return consumer.Close()
}

func (l *link) readPartition(
	ctx context.Context, c sarama.Consumer, topic string, partition int32, patience time.Duration, each func(key, value []byte) error,
) error {
	start, err := l.client.GetOffset(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	end, err := l.client.GetOffset(topic, partition, sarama.OffsetNewest)
	if err != nil || start >= end {
		return err
	}
	records, err := c.ConsumePartition(topic, partition, start)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	for {
		select {
		case m, ok := <-records.Messages():
			if !ok {
				return sarama.ErrOffsetOutOfRange
			}
			if err := each(m.Key, m.Value); err != nil || m.Offset >= end-1 {
				return err
			}
		case err := <-records.Errors():
			if err != nil {
				return err
			}
		case <-time.After(patience): // it may end in marks that are no records
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
