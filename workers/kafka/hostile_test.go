package kafka_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/kafka"
)

var produceKey = []kmsg.Key{kmsg.Produce}

// requireWaiting sends records of which none may be acknowledged or blamed.
func requireWaiting(t *testing.T, p sender, recs []outbox.Record) {
	t.Helper()
	for _, r := range p.Send(t.Context(), recs) {
		require.Equal(t, outbox.Waiting, r.Fate)
		require.Equal(t, fault.Outage, fault.Of(r.Err))
	}
}

// lookAndDeliver does what workers/deliver does with a batch in doubt: look what is there, send the rest.
func lookAndDeliver(t *testing.T, p sender, recs []outbox.Record) {
	t.Helper()
	there, err := p.Tail(t.Context(), len(recs))
	require.NoError(t, err)
	deliver(t, p, slices.DeleteFunc(slices.Clone(recs), func(r outbox.Record) bool { _, ok := there[r.EventID]; return ok }))
}

// A clock that is wrong, and bytes that change on their way, are not the event's fault (contract: DEAD only for its own).
func TestClocksAndChecksumsBlameNoEvent(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.InvalidTimestamp, kerr.CorruptMessage} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t)
			h := c.Fault(kfake.Fault{Keys: produceKey, Err: code, Count: -1})
			requireWaiting(t, p, events(1, 20))
			h.Remove()
			deliver(t, p, events(1, 20))
			require.Zero(t, requireOrder(t, c, 20))
		})
	}
}

// A broker that says "I have it" and names a place before the end means another batch. Nothing may be lost by believing it.
func TestAcknowledgementOfAnotherBatchIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(*kmsg.ProduceResponseTopicPartition){
		"an old place": func(p *kmsg.ProduceResponseTopicPartition) { p.BaseOffset = 0 },
		"no place":     func(p *kmsg.ProduceResponseTopicPartition) { p.BaseOffset = -1 },
		"duplicate": func(p *kmsg.ProduceResponseTopicPartition) {
			p.ErrorCode, p.BaseOffset = kerr.DuplicateSequenceNumber.Code, -1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := setup(t, kfake.NumBrokers(1))
			deliver(t, p, events(1, 100))
			_, err := p.Tail(t.Context(), 1)
			require.NoError(t, err)
			c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) { return acknowledge(req, lie), nil, true })
			requireWaiting(t, p, events(101, 100))
			lookAndDeliver(t, p, events(101, 100))
			require.Zero(t, requireOrder(t, c, 200))
		})
	}
}

// acknowledge answers a produce request without doing anything.
func acknowledge(req kmsg.Request, lie func(*kmsg.ProduceResponseTopicPartition)) kmsg.Response {
	in := req.(*kmsg.ProduceRequest)
	out := in.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range in.Topics {
		answer := kmsg.NewProduceResponseTopic()
		answer.Topic = topic.Topic
		for _, partition := range topic.Partitions {
			one := kmsg.NewProduceResponseTopicPartition()
			one.Partition = partition.Partition
			lie(&one)
			answer.Partitions = append(answer.Partitions, one)
		}
		out.Topics = append(out.Topics, answer)
	}
	return out
}

// A broker that answers something else, or nothing that can be read, is away.
func TestNonsenseIsAnOutage(t *testing.T) {
	t.Parallel()
	c, p := setup(t, kfake.NumBrokers(1))
	deliver(t, p, events(1, 50))
	var round atomic.Int32
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch round.Add(1) {
		case 1: // about no partition
			return req.ResponseKind(), nil, true
		case 2: // about another topic
			out := acknowledge(req, func(*kmsg.ProduceResponseTopicPartition) {}).(*kmsg.ProduceResponse)
			out.Topics[0].Topic = "other"
			return out, nil, true
		case 3: // a code nobody knows
			return acknowledge(req, func(p *kmsg.ProduceResponseTopicPartition) { p.ErrorCode = 9999 }), nil, true
		case 4: // an answer to another question
			return kmsg.NewPtrProduceRequest().ResponseKind(), nil, true
		}
		return nil, nil, false
	})
	deliver(t, p, events(51, 100))
	require.Greater(t, round.Load(), int32(4))
	require.Zero(t, requireOrder(t, c, 150))
}

// Without a producer identity nothing would be known as a repetition: nothing is sent, the check says so, and it heals alone.
func TestIdentityThatIsRefused(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	h := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	err := p.Check(t.Context())
	require.ErrorContains(t, err, "InitProducerId")
	require.Equal(t, fault.Outage, fault.Of(err))
	requireWaiting(t, p, events(1, 10))
	h.Remove()
	require.NoError(t, p.Check(t.Context()))
	deliver(t, p, events(1, 10))

	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		nobody := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		nobody.ProducerID, nobody.ProducerEpoch = -1, -1
		return nobody, nil, true
	})
	another := producer(t, config(c))
	require.ErrorContains(t, another.Check(t.Context()), "InitProducerId")
	require.NoError(t, another.Check(t.Context()))
}

// A broker that is replaced by one too old, and replaced again: not ready meanwhile, nobody's attempt, and back alone.
func TestBrokerThatBecomesTooOld(t *testing.T) {
	t.Parallel()
	c, p := setup(t, kfake.NumBrokers(1))
	require.NoError(t, p.Check(t.Context()))
	var old atomic.Bool
	c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !old.Load() {
			return nil, nil, false
		}
		switch req.(type) {
		case *kmsg.ApiVersionsRequest:
			return ancient(req), nil, true
		case *kmsg.InitProducerIDRequest, *kmsg.ProduceRequest:
			return nil, net.ErrClosed, true
		}
		return nil, nil, false
	})
	old.Store(true)
	require.ErrorIs(t, p.Check(t.Context()), kafka.ErrTooOld)
	requireWaiting(t, p, events(1, 10))
	old.Store(false)
	require.NoError(t, p.Check(t.Context()))
	deliver(t, p, events(1, 10))
	require.Zero(t, requireOrder(t, c, 10))
}

// A cluster that went away and came back while nothing was to be sent: the check alone finds it again.
func TestCheckRecoversAlone(t *testing.T) {
	t.Parallel()
	data := kfake.DataDir(t.TempDir())
	c := cluster(t, kfake.NumBrokers(1), data)
	p := producer(t, config(c))
	require.NoError(t, p.Check(t.Context()))
	port := portOf(t, c)
	c.Close()
	for range 3 {
		require.Equal(t, fault.Outage, fault.Of(p.Check(t.Context())))
	}
	cluster(t, kfake.NumBrokers(1), kfake.Ports(port), data)
	require.NoError(t, p.Check(t.Context()))
}

// ancient is what a broker without idempotent producers says of itself.
func ancient(req kmsg.Request) kmsg.Response {
	out := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.ApiVersions} {
		one := kmsg.NewApiVersionsResponseApiKey()
		one.ApiKey, one.MaxVersion = int16(key), kmsg.RequestForKey(int16(key)).MaxVersion()
		out.ApiKeys = append(out.ApiKeys, one)
	}
	return out
}

// A broker that is slow to give the tail has not said that nothing is there: what was sent before would be sent again.
func TestSlowTailIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.NumBrokers(1))
	cfg := config(c)
	cfg.RequestTimeout = 300 * time.Millisecond
	p := producer(t, cfg)
	deliver(t, p, events(1, 100))
	var slow atomic.Bool
	slow.Store(true)
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, slow.Load()
	})
	_, err := p.Tail(t.Context(), 100)
	require.Equal(t, fault.Outage, fault.Of(err))
	slow.Store(false)
	lookAndDeliver(t, p, events(1, 150))
	require.Zero(t, requireOrder(t, c, 150))
}

// A leader that is new does not show for a moment all that it has.
func TestTailBeyondWhatTheLeaderShows(t *testing.T) {
	t.Parallel()
	c, p := setup(t, kfake.NumBrokers(1))
	deliver(t, p, events(1, 100))
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		in := req.(*kmsg.FetchRequest)
		out := in.ResponseKind().(*kmsg.FetchResponse)
		answer, one := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answer.Topic, one.Partition = in.Topics[0].Topic, in.Topics[0].Partitions[0].Partition
		answer.Partitions = append(answer.Partitions, one)
		out.Topics = append(out.Topics, answer)
		return out, nil, true // once: one partition
	})
	there, err := p.Tail(t.Context(), 100)
	require.NoError(t, err)
	require.Less(t, len(there), 100)
	blind := 0
	for _, r := range p.Send(t.Context(), events(101, 50)) {
		if r.Fate == outbox.Waiting {
			require.ErrorContains(t, r.Err, "is not known")
			blind++
		}
	}
	require.Positive(t, blind)
}

// What was appended and not answered, and then refused for its number, must not be appended a second time under a new one.
func TestDoubtOutlivesTheIdentity(t *testing.T) {
	t.Parallel()
	c, p := setup(t, kfake.NumBrokers(1))
	deliver(t, p, events(1, 50))
	c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.NotEnoughReplicasAfterAppend}, kfake.Fault{Keys: produceKey, Err: kerr.OutOfOrderSequenceNumber})
	requireWaiting(t, p, events(51, 50))
	lookAndDeliver(t, p, events(51, 80))
	require.Zero(t, requireOrder(t, c, 130))
}

// The answer to every third batch is lost, and leaders move: each record is there once.
func TestK19_OrderSurvivesLostAnswers(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	var n atomic.Int32
	c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.RequestTimedOut, Count: -1, When: func(kmsg.Request) bool { return n.Add(1)%3 == 0 }})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if n.Load()%5 == 4 {
			c.ShufflePartitionLeaders()
		}
		return nil, nil, false
	})
	deliver(t, p, events(1, 2000))
	require.Zero(t, requireOrder(t, c, 2000))
}

// The topic is deleted and made anew, with fewer partitions, while something is in doubt: what follows is in order there.
func TestTopicIsDeletedAndMadeAnew(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	deliver(t, p, events(1, 200))
	_, err := p.Tail(t.Context(), 100)
	require.NoError(t, err)
	h := c.Fault(kfake.Fault{Keys: produceKey, Err: kerr.RequestTimedOut, Count: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for _, r := range p.Send(ctx, events(201, 50)) {
		require.Equal(t, outbox.Waiting, r.Fate)
	}
	require.NoError(t, c.DeleteTopic(topic))
	h.Remove()
	requireWaiting(t, p, events(201, 50))
	require.ErrorIs(t, p.Check(t.Context()), kafka.ErrNoTopic)
	require.NoError(t, c.CreateTopic(topic, partitions-2, nil))
	require.NoError(t, p.Check(t.Context()))
	lookAndDeliver(t, p, events(201, 100))
	require.Len(t, ids(t, c), 100)
}

// While partitions are added each record is sent once, and in order wherever it goes.
func TestPartitionsAreAdded(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	deliver(t, p, events(1, 300))
	grow := kmsg.NewPtrCreatePartitionsRequest()
	more := kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = topic, partitions+4
	grow.Topics = append(grow.Topics, more)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	require.NoError(t, err)
	defer cl.Close()
	r, err := grow.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	require.Zero(t, r.Topics[0].ErrorCode)
	deliver(t, p, events(301, 100)) // not noticed yet
	require.NoError(t, p.Check(t.Context()))
	deliver(t, p, events(401, 300))
	seen := make(map[int64]bool)
	moved := false
	for n, recs := range consume(t, c) {
		last := int64(0)
		for _, r := range recs {
			id := eventID(t, r)
			require.False(t, seen[id])
			require.Greater(t, id, last)
			seen[id], last = true, id
		}
		moved = moved || n >= partitions
	}
	require.Len(t, seen, 700)
	require.True(t, moved, "the new partitions are used once they are known")
}

// A record that no broker would take is dead for its size and costs nobody the connection; a round stays below the limit.
func TestRecordBeyondEveryLimit(t *testing.T) {
	t.Parallel()
	c, p := setup(t, kfake.NumBrokers(1))
	recs := events(1, 40)
	recs[7].Value = bytes.Repeat([]byte("x"), 65<<20)
	results := p.Send(t.Context(), recs)
	require.Equal(t, outbox.TooLarge, results[7].Fate)
	for i, r := range results {
		if r.Partition != results[7].Partition || i < 7 {
			require.Equal(t, outbox.Acked, r.Fate, "%d: %v", i, r.Err)
		}
	}
	require.NoError(t, p.Check(t.Context()))
	require.NoError(t, c.DeleteTopic(topic))
}

// A door that takes connections and never says a word: it costs its time and nothing for good, also where TLS begins.
func TestSilentDoor(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]kafka.TLS{"plain": {}, "tls": {Enabled: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			door, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var guests atomic.Int32
			go func() {
				for {
					guest, err := door.Accept()
					if err != nil {
						return
					}
					guests.Add(1)
					t.Cleanup(func() { _ = guest.Close() })
				}
			}()
			t.Cleanup(func() { _ = door.Close() })
			cfg := kafka.Defaults()
			cfg.Brokers, cfg.TLS = []string{door.Addr().String()}, secure
			cfg.RequestTimeout, cfg.SendTimeout = 100*time.Millisecond, 150*time.Millisecond
			p := producer(t, cfg)
			for range 5 {
				require.Equal(t, fault.Outage, fault.Of(p.Send(t.Context(), events(1, 1))[0].Err))
			}
			require.GreaterOrEqual(t, guests.Load(), int32(3), "it goes on trying")
		})
	}
}
