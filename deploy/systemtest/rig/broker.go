package rig

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Broker is a Kafka cluster in this process, outside every pod: it outlives them all. Its clients can be cut off and frozen.
type Broker struct {
	*kfake.Cluster
	gate
}

// OpenBroker makes one with the topics msg and schd, and more, of so many partitions each.
func OpenBroker(partitions int32, more ...string) (*Broker, error) {
	b := &Broker{}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, append(more, "msg", "schd")...), kfake.ListenFn(
		func(network, address string) (net.Listener, error) {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), network, address)
			return &gatedListener{l, &b.gate}, err
		}))
	b.Cluster = cluster
	return b, err
}

// gatedListener lets connections in through a gate.
type gatedListener struct {
	net.Listener
	gate *gate
}

// Accept is net.Listener's; a connection that comes while the gate is cut never gets in.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.gate.enter(c) {
			return &gatedConn{c, l.gate}, nil
		}
	}
}

// gatedConn is the server's end of a connection: what clients send is taken, what they get may wait.
type gatedConn struct {
	net.Conn
	gate *gate
}

// Write waits while the gate is frozen.
func (c *gatedConn) Write(b []byte) (int, error) { return c.gate.write(c.Conn, b) }

// Close leaves the gate.
func (c *gatedConn) Close() error {
	c.gate.leave(c.Conn)
	return nil
}

// Read gives all records of a topic so far, partition by partition in order.
func (b *Broker) Read(ctx context.Context, topic string) ([]*kgo.Record, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var want int64
	for _, p := range b.PartitionInfos(topic) {
		want += p.HighWatermark - p.LogStartOffset
	}
	var all []*kgo.Record
	for int64(len(all)) < want {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		if fetches.Empty() {
			return all, nil
		}
		all = append(all, fetches.Records()...)
	}
	return all, nil
}

// readTimeout bounds the wait for records that the broker says it has.
const readTimeout = 10 * time.Second

// Header gives the text of a record's header, empty when it has none of that name.
func Header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
