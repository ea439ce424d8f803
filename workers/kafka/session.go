package kafka

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
)

// broker is what a session needs of the cluster; link is the real one. The calls end when ctx does.
type broker interface {
	identify(ctx context.Context) (outbox.Term, error)
	produce(ctx context.Context, batches map[int32]*sarama.RecordBatch) (map[int32]answer, error)
	refresh(ctx context.Context) error
}

const (
	maxBatchBytes = 512 * 1024 // of one partition's batch, unless one record alone is larger; topics take 1 MiB by default
	maxRoundBytes = 16 << 20   // of all batches of a round, unless one alone is larger; brokers cut off who sends 100 MiB at once
	recordBytes   = 64         // rough cost of a record and of a header beyond their texts
	minPause      = 20 * time.Millisecond
	maxPause      = time.Second
	patience      = 2 * time.Second // with what does not move, when the rest is settled: the caller has more for other partitions
)

// session is one Send: a round sends the next batch of every partition and waits for all answers; rounds follow until
// everything is settled or the time is over. It runs on the caller's goroutine alone.
type session struct {
	broker  broker
	id      *identity
	log     *slog.Logger
	now     func() time.Time
	records []outbox.Record
	results []outbox.Result
	known   tail // what the topic ended with before this Send
	lanes   []*lane
	why     error // the newest reason for not getting on
}

// lane is one partition's part of a session.
type lane struct {
	partition int32
	queue     []int // places of the records not settled yet, in order
	limit     int   // most records in a batch; shrinks to find the record a broker refuses
	batch     *sarama.RecordBatch
	again     int  // the first so many records are in doubt from the Send before and must form one batch again
	doubtful  bool // the batch was sent and nobody knows whether it was appended
	before    bool // it was so before this round already
}

// run settles what it can before ctx ends or nothing moves for patience; what it cannot stays Waiting.
func (s *session) run(ctx context.Context) {
	pause, since := minPause, s.now()
	for open := s.open(); len(open) > 0; open = s.open() {
		moved := s.round(ctx, open)
		if ctx.Err() != nil {
			break
		}
		if moved {
			pause, since = minPause, s.now()
			continue
		}
		if s.now().Sub(since) >= patience {
			break
		}
		if s.rest(ctx, pause); ctx.Err() != nil {
			break
		}
		pause = min(2*pause, maxPause)
	}
	s.leave()
}

// rest lets the cluster come to itself and looks who leads there now.
func (s *session) rest(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return
	}
	if err := s.broker.refresh(ctx); err != nil {
		s.why = err
	}
}

func (s *session) open() []*lane {
	return slices.DeleteFunc(slices.Clone(s.lanes), func(l *lane) bool { return len(l.queue) == 0 })
}

// round reports whether any partition came further.
func (s *session) round(ctx context.Context, open []*lane) (moved bool) {
	if !s.id.known {
		term, err := s.broker.identify(ctx)
		if err != nil {
			s.why = err
			return false
		}
		s.id.assume(term)
	}
	open, batches := s.fill(open)
	answers, err := s.broker.produce(ctx, batches)
	if err != nil {
		s.why = err
		return false
	}
	for _, l := range open {
		if s.apply(l, answers[l.partition]) {
			moved = true
		}
	}
	if !s.id.known {
		s.lookFirst()
	}
	return moved
}

// fill makes the next batch of as many lanes as one request may hold, and gives those.
func (s *session) fill(open []*lane) (in []*lane, batches map[int32]*sarama.RecordBatch) {
	batches = make(map[int32]*sarama.RecordBatch, len(open))
	total := 0
	for _, l := range open {
		s.load(l)
		if total += s.bytes(l); total > maxRoundBytes && len(in) > 0 {
			break
		}
		in, batches[l.partition] = append(in, l), l.batch
		l.before, l.doubtful = l.doubtful, true
	}
	return in, batches
}

// bytes is the rough size of a lane's batch.
func (s *session) bytes(l *lane) (n int) {
	for _, i := range l.queue[:len(l.batch.Records)] {
		n += weight(s.records[i])
	}
	return n
}

// lookFirst holds what was sent under an identity given up and not answered: it may be in the log, and under another identity
// it would be appended again. The caller looks and sends what is not there.
func (s *session) lookFirst() {
	for _, l := range s.open() {
		if l.doubtful {
			s.hold(l, fmt.Errorf("partition %d: no answer under an identity that has ended: %w", l.partition, s.why))
		}
	}
}

// load makes the lane's next batch, or puts the one already sent under the identity of today.
func (s *session) load(l *lane) {
	if l.batch == nil {
		now := s.now()
		l.batch = &sarama.RecordBatch{Version: 2, FirstTimestamp: now, MaxTimestamp: now}
		size := 0
		for n, i := range l.queue[:cmp.Or(l.again, min(len(l.queue), l.limit))] {
			if size += weight(s.records[i]); n > 0 && size > maxBatchBytes && l.again == 0 {
				break
			}
			l.batch.Records = append(l.batch.Records, wire(s.records[i], int64(n)))
		}
		l.batch.LastOffsetDelta = int32(len(l.batch.Records) - 1)
	}
	l.batch.ProducerID, l.batch.ProducerEpoch, l.batch.FirstSequence = s.id.id, s.id.epoch, s.id.next[l.partition]
}

// wire takes one piece of memory for all headers and one for their texts: a record has six, a backlog ten thousand records.
func wire(r outbox.Record, place int64) *sarama.Record {
	w := &sarama.Record{OffsetDelta: place, Key: []byte(r.Key), Value: r.Value, Headers: make([]*sarama.RecordHeader, len(r.Headers))}
	headers := make([]sarama.RecordHeader, len(r.Headers))
	size := 0
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	texts := make([]byte, 0, size)
	bytesOf := func(s string) []byte {
		texts = append(texts, s...)
		return texts[len(texts)-len(s) : len(texts) : len(texts)]
	}
	for i, h := range r.Headers {
		headers[i] = sarama.RecordHeader{Key: bytesOf(h.Key), Value: bytesOf(h.Value)}
		w.Headers[i] = &headers[i]
	}
	return w
}

func weight(r outbox.Record) int {
	n := recordBytes + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += recordBytes + len(h.Key) + len(h.Value)
	}
	return n
}

// apply takes a broker's answer in and reports whether the partition came further.
func (s *session) apply(l *lane, a answer) bool {
	if a.err != nil {
		s.why = a.err
		return false
	}
	verdict := s.judge(l, a)
	if verdict != repeat {
		l.doubtful, l.again = false, 0
		delete(s.id.doubts, l.partition)
	}
	switch verdict {
	case appended:
		s.acknowledge(l, a)
		return true
	case tooLarge, refused:
		s.narrow(l, a, verdict)
		return true
	case renumber:
		s.log.Warn("kafka producer renumbered", "partition", l.partition, "reason", a.code.Error())
		s.id.forget()
		l.doubtful = l.before // this time it was not appended
	case mistaken:
		s.log.Warn("kafka acknowledged another batch", "partition", l.partition, "kafka_offset", a.offset, "reason", a.code.Error())
		s.id.forget()
		l.doubtful = true
	case denied:
		s.hold(l, fmt.Errorf("partition %d: %w", l.partition, a.code))
	case repeat:
	}
	s.why = a.code
	return false
}

// judge is the meaning of an answer. Nothing of this Send can lie before the end that the partition had: a broker that says
// so takes the batch for one of long ago, of a PostgreSQL since restored perhaps, or has another log.
func (s *session) judge(l *lane, a answer) verdict {
	v := judge(a.code)
	if v == appended && a.offset < s.known.ends[l.partition] { // 0 when it is not known
		return mistaken
	}
	return v
}

func (s *session) acknowledge(l *lane, a answer) {
	n := len(l.batch.Records)
	for place, i := range l.queue[:n] {
		s.results[i] = outbox.Result{Fate: outbox.Acked, Partition: l.partition, Offset: a.offset + int64(place)}
	}
	l.queue, l.batch = l.queue[n:], nil
	if s.id.known { // an answer of the same round may have ended the identity
		s.id.advance(l.partition, n)
	}
}

// narrow handles a batch of which nothing was appended because of what is in it. A batch of many says little about each:
// it is tried again in smaller parts until the record that is refused stands alone, behind all that were before it.
func (s *session) narrow(l *lane, a answer, v verdict) {
	n := len(l.batch.Records)
	l.batch = nil
	if n > 1 {
		l.limit = (n + 1) / 2
		if len(a.guilty) > 0 {
			l.limit = max(1, min(int(slices.Min(a.guilty)), n-1))
		}
		return
	}
	i := l.queue[0]
	r := outbox.Result{Fate: outbox.Refused, Partition: l.partition, Err: fault.Wrap(fault.Refused, "send to kafka", a.code)}
	if v == tooLarge {
		r.Fate = outbox.TooLarge
	}
	s.results[i] = r
	l.queue = l.queue[1:]
	s.hold(l, fmt.Errorf("behind event %d, which was refused", s.records[i].EventID))
}

// hold ends a lane: its records wait, and err says what for.
func (s *session) hold(l *lane, err error) {
	err = outage("send to kafka", err)
	for _, i := range l.queue {
		s.results[i] = outbox.Result{Partition: l.partition, Err: err}
	}
	l.queue = nil
}

// leave holds what is still open and remembers what is in doubt.
func (s *session) leave() {
	for _, l := range s.open() {
		if l.doubtful && s.id.known {
			ids := make([]int64, max(l.again, batchLen(l.batch)))
			for n := range ids {
				ids[n] = s.records[l.queue[n]].EventID
			}
			s.id.doubts[l.partition] = ids
		}
		s.hold(l, fmt.Errorf("partition %d: not acknowledged in time, last: %w", l.partition, s.why))
	}
}

func batchLen(b *sarama.RecordBatch) int {
	if b == nil {
		return 0
	}
	return len(b.Records)
}

// resolve goes on with the batches the Send before left in doubt. If what follows on a partition is not the same now, the
// old batch must not be appended any more, behind its successors: that takes a new epoch, in which doubts end.
func (s *session) resolve() {
	for _, l := range s.lanes {
		ids, ok := s.id.doubts[l.partition]
		if !ok {
			continue
		}
		l.again, l.doubtful = len(ids), true
		for n, id := range ids {
			if n >= len(l.queue) || s.records[l.queue[n]].EventID != id {
				s.id.forget()
				for _, l := range s.lanes {
					l.again, l.doubtful = 0, false
				}
				return
			}
		}
	}
}

// spread puts the records on the lanes of their partitions. A record with a blank key is refused: no consumer could tell
// whose it is (K21).
func (s *session) spread(partition func(key string) (int32, error)) error {
	lanes := make(map[int32]*lane)
	for i, r := range s.records {
		if strings.TrimSpace(r.Key) == "" {
			s.results[i] = outbox.Result{Fate: outbox.Refused, Err: fault.New(fault.Refused, "send to kafka", "event %d has a blank key", r.EventID)}
			continue
		}
		p, err := partition(r.Key)
		if err != nil {
			return err
		}
		if err := s.known.blind[p]; err != nil {
			s.results[i] = outbox.Result{Partition: p, Err: outage("send to kafka", fmt.Errorf("the end of partition %d is not known: %w", p, err))}
			continue
		}
		if lanes[p] == nil {
			lanes[p] = &lane{partition: p, limit: len(s.records)}
			s.lanes = append(s.lanes, lanes[p])
		}
		lanes[p].queue = append(lanes[p].queue, i)
	}
	s.resolve()
	return nil
}
