package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
)

// link is one sarama client and the calls under way on it. A call that does not come back in time is left behind with its
// link; the link is then closed in the background and another one made (K20).
type link struct {
	client sarama.Client
	able   atomic.Bool // the brokers gave a producer identity, and no connection broke since
	calls  sync.WaitGroup
	close  func() // at most once; does not wait
	closed chan struct{}
}

func newLink(brokers []string, cfg *sarama.Config) (*link, error) {
	client, err := sarama.NewClient(brokers, cfg) // no request yet: Metadata.Full is off
	if err != nil {
		return nil, err
	}
	l := &link{client: client, closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() {
		go func() {
			defer close(l.closed)
			_ = client.Close() // fails only when closed already
			l.calls.Wait()
		}()
	})
	return l, nil
}

// await runs call, which blocks without regard to ctx, and gives its answer, or an error when ctx ended first.
// The call may then still be running: nothing it uses may be touched again.
func await[T any](ctx context.Context, l *link, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	l.calls.Go(func() {
		v, err := call()
		answers <- answer{v, err}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer from the brokers: %w", context.Cause(ctx))
	}
}

// answer is what came back for the batch of one partition. With err set nobody knows whether it was appended.
type answer struct {
	err    error
	code   sarama.KError
	offset int64   // of the first record, when appended
	guilty []int32 // places in the batch of the records that were refused, when the broker says so
}

// produce sends each partition's batch to its leader, one request a broker, and waits for all answers. It begins nothing
// after the end of ctx: a process that was stopped for long may no longer be the one to send.
func (l *link) produce(ctx context.Context, topic string, timeout time.Duration, batches map[int32]*sarama.RecordBatch) map[int32]answer {
	answers := make(map[int32]answer, len(batches))
	requests := make(map[*sarama.Broker]*sarama.ProduceRequest)
	partitions := make(map[*sarama.Broker][]int32)
	var away error
	for p, batch := range batches {
		switch {
		case away != nil:
			answers[p] = answer{err: away}
			continue
		case len(batch.Records) == 1 && size(batch.Records[0]) > maxRecordBytes: // asking would cost the connection each time
			answers[p] = answer{code: sarama.ErrMessageSizeTooLarge}
			continue
		}
		leader, err := l.client.Leader(topic, p)
		if err != nil {
			answers[p] = answer{err: err}
			if errors.Is(err, sarama.ErrOutOfBrokers) { // nobody there: each further question would cost another timeout
				away = err
			}
			continue
		}
		if requests[leader] == nil {
			const produceV9 = 9 // of Kafka 2.8; sarama lowers it to what the broker speaks
			requests[leader] = &sarama.ProduceRequest{
				RequiredAcks: sarama.WaitForAll, Timeout: int32(timeout.Milliseconds()), Version: produceV9,
			}
		}
		requests[leader].AddBatch(topic, p, batch)
		partitions[leader] = append(partitions[leader], p)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for leader, request := range requests {
		all.Go(func() {
			err := context.Cause(ctx)
			var response *sarama.ProduceResponse
			if err == nil {
				response, err = leader.Produce(request)
			}
			if err != nil {
				_ = leader.Close() // what would come over it now answers another question; Leader opens it again
				l.able.Store(false)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range partitions[leader] {
				answers[p] = read(response, topic, p, err)
			}
		})
	}
	all.Wait()
	return answers
}

// maxRecordBytes is beyond what any topic takes: brokers close the connection on a request of 100 MiB (socket.request.max.bytes).
const maxRecordBytes = 64 << 20

func size(r *sarama.Record) int { return len(r.Key) + len(r.Value) }

func read(r *sarama.ProduceResponse, topic string, partition int32, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	block := r.GetBlock(topic, partition)
	if block == nil {
		return answer{err: sarama.ErrIncompleteResponse}
	}
	a := answer{code: block.Err, offset: block.Offset}
	for _, e := range block.RecordErrors {
		a.guilty = append(a.guilty, e.BatchIndex)
	}
	return a
}

// someone gives a broker to ask what any of them knows. When all were given up, a question about the topic brings back those
// of the configuration.
func (l *link) someone(topic string) (*sarama.Broker, error) {
	if broker := l.client.LeastLoadedBroker(); broker != nil {
		return broker, nil
	}
	err := l.client.RefreshMetadata(topic)
	if broker := l.client.LeastLoadedBroker(); broker != nil {
		return broker, nil
	}
	return nil, cmp.Or(err, error(sarama.ErrOutOfBrokers))
}

// enlist asks for a producer identity, without which nothing can be sent.
func (l *link) enlist(topic string) (*sarama.InitProducerIDResponse, error) {
	broker, err := l.someone(topic)
	if err != nil {
		return nil, err
	}
	const initProducerIDV4 = 4 // of Kafka 2.7; sarama lowers it to what the broker speaks
	r, err := broker.InitProducerID(&sarama.InitProducerIDRequest{Version: initProducerIDV4, ProducerID: -1, ProducerEpoch: -1})
	switch {
	case err != nil:
		_ = broker.Close()
	case r.Err != sarama.ErrNoError:
		err = r.Err
	case r.ProducerID < 0 || r.ProducerEpoch < 0: // sent under it, nothing would be known as a repetition
		err = fmt.Errorf("producer %d, epoch %d: %w", r.ProducerID, r.ProducerEpoch, sarama.ErrIncompleteResponse)
	}
	l.able.Store(err == nil)
	if err != nil {
		return nil, fmt.Errorf("the brokers give no producer identity (InitProducerId): %w", err)
	}
	return r, nil
}

// identify asks for a producer identity and whose it is.
func (l *link) identify(topic string) (t outbox.Term, err error) {
	r, err := l.enlist(topic)
	if err != nil {
		return t, err
	}
	broker, err := l.someone(topic)
	if err != nil {
		return t, err
	}
	about, err := broker.GetMetadata(sarama.NewMetadataRequest(sarama.V2_8_0_0, []string{}))
	if err != nil {
		_ = broker.Close()
		return t, fmt.Errorf("cluster of %s: %w", broker.Addr(), err)
	}
	if about.ClusterID != nil {
		t.Cluster = *about.ClusterID
	}
	t.Producer, t.Epoch = r.ProducerID, r.ProducerEpoch
	return t, nil
}

// apiInitProducerID is the request without which a broker cannot tell a repeated batch from a new one.
const apiInitProducerID = 22

// checkVersions refuses brokers that have no idempotent producer (design §7).
func (l *link) checkVersions(topic string) error {
	broker, err := l.someone(topic)
	if err != nil {
		return err
	}
	r, err := broker.ApiVersions(&sarama.ApiVersionsRequest{})
	if err != nil {
		_ = broker.Close()
		return fmt.Errorf("api versions of %s: %w", broker.Addr(), err)
	}
	if !slices.ContainsFunc(r.ApiKeys, func(k sarama.ApiVersionsResponseKey) bool { return k.ApiKey == apiInitProducerID }) {
		return fmt.Errorf("broker %s: %w", broker.Addr(), ErrTooOld)
	}
	return nil
}

// outage says that something outside kept us from doing op; nobody's record is to blame.
func outage(op string, err error) error { return fault.Wrap(fault.Outage, op, err) }
