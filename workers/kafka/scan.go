package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// entry is a record as it lies in a partition.
type entry struct {
	offset     int64
	key, value []byte // a nil value is a tombstone
	headers    []*sarama.RecordHeader
}

// scan hands on the records of a partition from an offset to before another, in their order. Its end without an error is
// the truth: a broker that is slow, or keeps something back, gives an error and never a partition that seems to end early.
// It asks the leader itself because sarama's consumer does not tell that there is nothing more where no record lies last but
// the mark of a transaction, or nothing since a compaction.
func (l *link) scan(ctx context.Context, topic string, partition int32, from, end int64, each func(entry) error) error {
	for size := int32(fetchBytes); from < end; {
		block, err := l.fetch(topic, partition, from, size)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case block == nil: // over our quota; the next request waits as long as the broker asked for
			continue
		}
		next, err := pass(block.RecordsSet, from, end, each)
		switch {
		case err != nil:
			return err
		case next > from:
			from = next
		case !block.Partial && len(block.RecordsSet) == 0:
			return ended(block, end)
		case size >= maxFetchBytes: // there is something, and not one whole batch of it
			return sarama.ErrMessageTooLarge
		default:
			size = min(2*size, maxFetchBytes)
		}
	}
	return nil
}

const (
	fetchBytes    = 1 << 20  // of one answer, unless a single batch is larger
	maxFetchBytes = 64 << 20 // below what sarama reads at once
)

// ended judges an answer without records: a leader that is new does not show all it has for a moment.
func ended(b *sarama.FetchResponseBlock, end int64) error {
	if b.HighWaterMarkOffset < end {
		return fmt.Errorf("readable up to %d, not yet to %d", b.HighWaterMarkOffset, end)
	}
	return nil
}

// fetch asks a partition's leader once. No block and no error: it wants us to come more slowly.
func (l *link) fetch(topic string, partition int32, from int64, size int32) (*sarama.FetchResponseBlock, error) {
	leader, err := l.client.Leader(topic, partition)
	if err != nil {
		return nil, err
	}
	const fetchV11, noEpoch = 11, -1 // of Kafka 2.3; sarama lowers it to what the broker speaks
	request := &sarama.FetchRequest{
		Version: fetchV11, MinBytes: 1, MaxBytes: size, MaxWaitTime: int32(fetchWait.Milliseconds()), SessionEpoch: noEpoch,
	}
	request.AddBlock(topic, partition, from, size, noEpoch)
	response, err := leader.Fetch(request)
	if err != nil {
		_ = leader.Close()
		return nil, err
	}
	block := response.GetBlock(topic, partition)
	switch {
	case block == nil && response.ThrottleTime > 0:
		return nil, nil
	case block == nil:
		return nil, sarama.ErrIncompleteResponse
	case block.Err != sarama.ErrNoError:
		return nil, block.Err
	}
	return block, nil
}

// fetchWait is how long a broker may look for a byte to give; where it has one it does not wait.
const fetchWait = 10 * time.Millisecond

// pass hands on what is in [from, end) of fetched batches and gives the offset behind all of them.
func pass(all []*sarama.Records, from, end int64, each func(entry) error) (next int64, err error) {
	next = from
	give := func(e entry) {
		if err == nil && e.offset >= from && e.offset < end {
			err = each(e)
		}
		next = max(next, e.offset+1)
	}
	for _, records := range all {
		if records.MsgSet != nil {
			old(records.MsgSet, give)
			continue
		}
		b := records.RecordBatch
		if b == nil || b.PartialTrailingRecord {
			continue
		}
		for _, r := range b.Records {
			if !b.Control {
				give(entry{offset: b.FirstOffset + r.OffsetDelta, key: r.Key, value: r.Value, headers: r.Headers})
			}
		}
		next = max(next, b.LastOffset()+1)
	}
	return next, err
}

// old reads batches as they were before Kafka 0.11: without headers, and compressed as one message around the others.
func old(set *sarama.MessageSet, give func(entry)) {
	for _, block := range set.Messages {
		inner := block.Messages()
		for _, m := range inner {
			offset := m.Offset
			if m.Msg.Version >= 1 { // counted from the first; the outer one has the last's
				offset += block.Offset - inner[len(inner)-1].Offset
			}
			give(entry{offset: offset, key: m.Msg.Key, value: m.Msg.Value})
		}
	}
}
