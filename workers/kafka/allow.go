package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/IBM/sarama"
)

// Allow lets a topic take records of so many bytes (max.message.bytes). It needs the right to alter the topic, which the
// product itself never uses: drills do. Its errors are outages.
func Allow(ctx context.Context, cfg Config, topic string, bytes int) error {
	lib, err := cfg.sarama()
	if err != nil {
		return err
	}
	lib.Metadata.Full = true // the one who may alter topics is not among our topics' leaders
	l, err := newLink(cfg.Brokers, lib)
	if err != nil {
		return outage("alter topic "+topic, err)
	}
	defer l.close()
	_, err = await(ctx, l, func() (struct{}, error) { return struct{}{}, l.allow(topic, strconv.Itoa(bytes)) })
	return outage("alter topic "+topic, err)
}

func (l *link) allow(topic, bytes string) error {
	admin, err := sarama.NewClusterAdminFromClient(l.client) // closing it would close the link's client
	if err != nil {
		return err
	}
	change := map[string]sarama.IncrementalAlterConfigsEntry{"max.message.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &bytes}}
	if err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, change, false); err != nil {
		return fmt.Errorf("max.message.bytes: %w", err)
	}
	return nil
}
