package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
)

// Kafka is one topic. workers/kafka has the real one; kafkatest says what every one must do.
type Kafka interface {
	// Send puts records into the topic, in order within each partition, and says of each what became of it; after a record
	// that is not Acked none of its partition is. It returns in bounded time. Once a record of another seat is in a partition,
	// none of a seat before is appended there any more.
	Send(ctx context.Context, seat Seat, records []outbox.Record) []outbox.Result
	// Tail gives event id and place of the last n records of each partition at least. fault.Unsupported: it may not be read.
	// Send holds back what is for a partition that Tail could not read.
	Tail(ctx context.Context, n int) (map[int64]outbox.Place, error)
}

// Seat is the right to send to a topic, held by one worker at a time and compared with ==.
type Seat = interface {
	// Claim gives a term newer than every one given before: offer when there was none of its cluster, or no epoch is left.
	Claim(ctx context.Context, offer outbox.Term) (outbox.Term, error)
}

// seat is a worker's hold on its role as brokers get to see it.
type seat struct {
	store  *store.Store
	fence  *lease.Fence
	target outbox.Target
}

func (s seat) Claim(ctx context.Context, offer outbox.Term) (term outbox.Term, err error) {
	err = s.fence.Tx(ctx, func(tx pgx.Tx) error {
		term, err = s.store.ClaimTerm(ctx, tx, s.fence.Lane(), s.target, offer)
		return err
	})
	return term, err
}

// Deps is what the roles are made of.
type Deps struct {
	Pool    *pgxpool.Pool
	Store   *store.Store
	Kafka   Kafka
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// courier is what the two roles have in common: one batch on its way to one topic.
type courier struct {
	Deps
	target outbox.Target
	batch  int // events of a step

	mu     sync.Mutex // one step at a time, also when a job runs twice
	seat   seat       // of the steps before
	unsure bool       // something may be in the topic that is not marked
	stuck  int        // steps in a row after which something waited
	away   outage
}

func newCourier(d Deps, t outbox.Target, batch int) courier {
	d.Log = d.Log.With("target", t)
	return courier{Deps: d, target: t, batch: batch, unsure: true, away: outage{log: d.Log}}
}

// Pending says whether any event of the target may wait, also one in backoff. A step finds out, and then it is right.
func (c *courier) Pending(ctx context.Context, q db.Querier) (bool, error) {
	return c.Store.EventsWait(ctx, q, c.target, 0)
}

// parcel is an event to send and the older ones of its flight it stands for.
type parcel struct {
	store.Queued
	older []int64
}

// fetch reads events under the fence, so that a worker that has lost it does not begin to send what another is sending.
func (c *courier) fetch(ctx context.Context, f *lease.Fence, read func(tx pgx.Tx) ([]store.Queued, error)) (events []store.Queued, err error) {
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		if err := relax(ctx, tx); err != nil {
			return err
		}
		events, err = read(tx)
		return err
	})
	return events, err
}

// deliver sends a batch and marks what became of it. wait is how long it is no use to go on.
func (c *courier) deliver(ctx context.Context, f *lease.Fence, batch []parcel) (next drain.Next, err error) {
	if now := (seat{c.Store, f, c.target}); c.seat != now { // others may have sent since
		c.seat, c.unsure = now, true
	}
	there, err := c.look(ctx)
	if err != nil {
		return drain.Next{Wait: c.away.met(err), Away: true}, nil
	}
	results, err := c.send(ctx, batch, there)
	if err != nil {
		return drain.Next{}, err
	}
	sent, refused, waits := c.sort(batch, results)
	c.unsure = true // until the marks are committed, and as long as something may be in the topic that is not known to be
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		if err := relax(ctx, tx); err != nil {
			return err
		}
		now := c.Now()
		if err := c.Store.MarkSent(ctx, tx, c.target, sent, now); err != nil {
			return err
		}
		return c.Store.MarkFailed(ctx, tx, refused)
	})
	if err != nil {
		return drain.Next{}, err
	}
	c.unsure = waits != nil
	c.tell(batch, results)
	c.stuck++
	if waits == nil {
		c.stuck = 0
	}
	if waits != nil && len(sent)+len(refused) == 0 {
		return drain.Next{Wait: c.away.met(waits), Away: true}, nil
	}
	c.away.over()
	return drain.Next{Again: true}, nil
}

// widest is how much larger than a batch a step may be.
const widest = 4

// size is how many events the next step takes: more while some partitions are stuck, so that what waits for them does not
// keep out what the others could have.
func (c *courier) size() int { return c.batch * min(1+c.stuck, widest) }

// look gives what lies at the end of the topic when some of it may not be marked; nil when everything is.
func (c *courier) look(ctx context.Context) (map[int64]outbox.Place, error) {
	if !c.unsure {
		return nil, nil
	}
	there, err := c.Kafka.Tail(ctx, c.batch*widest) // the most a step may have left unmarked
	if fault.Of(err) == fault.Unsupported {
		c.Log.WarnContext(ctx, "topic not readable", "effect", "events may be sent twice after a takeover", "error", fault.Text(err))
		return nil, nil
	}
	return there, err
}

// send gives Kafka what is not there yet.
func (c *courier) send(ctx context.Context, batch []parcel, there map[int64]outbox.Place) ([]outbox.Result, error) {
	results := make([]outbox.Result, len(batch))
	var records []outbox.Record
	var places []int
	for i, p := range batch {
		if at, ok := there[p.ID]; ok {
			results[i] = outbox.Result{Fate: outbox.Acked, Partition: at.Partition, Offset: at.Offset}
			continue
		}
		records, places = append(records, p.Record()), append(places, i)
	}
	if len(records) == 0 {
		return results, nil
	}
	for i, r := range c.Kafka.Send(ctx, c.seat, records) {
		results[places[i]] = r
	}
	return results, ctx.Err()
}

// sort splits a batch by fate. waits is the reason of the first that must wait, nil when none does.
func (c *courier) sort(batch []parcel, results []outbox.Result) (sent []store.Delivered, refused []store.Refusal, waits error) {
	now := c.Now()
	for i, r := range results {
		p := batch[i]
		switch r.Fate {
		case outbox.Acked:
			sent = append(sent, store.Delivered{
				ID: p.ID, FLID: p.FLID, Place: outbox.Place{Partition: r.Partition, Offset: r.Offset}, Older: p.older,
			})
		case outbox.Refused:
			refused = append(refused, store.Refusal{ID: p.ID, Fate: r.Fate, Next: nextTry(p.Attempts+1, now), Err: r.Err})
		case outbox.TooLarge: // a definite answer: it will not shrink (contract §8.17)
			refused = append(refused, store.Refusal{ID: p.ID, Fate: r.Fate, Err: r.Err})
		case outbox.Waiting:
			if waits == nil {
				waits = r.Err
			}
		}
	}
	return sent, refused, waits
}

// tell logs and counts what was marked.
func (c *courier) tell(batch []parcel, results []outbox.Result) {
	now := c.Now()
	for i, r := range results {
		p := batch[i]
		switch r.Fate {
		case outbox.Acked:
			if c.target == outbox.Msg && !p.ReceivedAt.IsZero() {
				c.Metrics.EndToEnd.Observe(now.Sub(p.ReceivedAt).Seconds())
			}
		case outbox.Refused, outbox.TooLarge:
			attrs := []any{"event_id", p.ID, "msg_id", p.Message.ID, "trace_id", outbox.TraceID(p.Message), "flid", p.FLID, "attempt", p.Attempts + 1, "error", fault.Text(r.Err)}
			if r.Fate == outbox.TooLarge || nextTry(p.Attempts+1, now).IsZero() {
				c.Log.Error("event dead", attrs...)
			} else {
				c.Log.Warn("event refused", attrs...)
			}
		case outbox.Waiting:
		}
	}
	c.Log.Debug("events delivered", "count", len(batch))
}

// relax lets the commit return before it is on disk. What is lost with PostgreSQL is the mark of an event that was sent; it
// is then found in the topic, or, on schd, the same state may be sent again.
func relax(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off")
	return db.Classify(err)
}

// outage spaces the tries while the broker is away, and tells its beginning and its end.
type outage struct {
	log   *slog.Logger
	pause time.Duration
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

func (o *outage) met(err error) (pause time.Duration) {
	if o.pause == 0 {
		o.log.Warn("kafka away", "error", fault.Text(err))
	}
	o.pause = min(max(2*o.pause, firstPause), maxPause)
	return o.pause
}

func (o *outage) over() {
	if o.pause > 0 {
		o.log.Info("kafka back")
		o.pause = 0
	}
}
