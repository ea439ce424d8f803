package simulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"msgexchange/jobs/message"
)

// Row is one row for the inbound mailbox table.
type Row struct {
	Text       string
	ReceivedAt time.Time
}

// Mailbox is where a Writer puts messages.
type Mailbox interface {
	// Insert commits the rows together, in their order.
	Insert(ctx context.Context, rows []Row) error
	// Begin inserts a row and leaves its transaction open: the row has its id, and nobody else sees it yet. Insert must
	// work while three such transactions are open.
	Begin(ctx context.Context, row Row) (Pending, error)
}

// Pending is a transaction with one row: committed late, or rolled back so that its id stays a hole.
type Pending interface {
	Commit() error
	Rollback() error
}

// Fault is a way in which a real sender is not perfect.
type Fault string

// The closed set of faults.
const (
	Holes     Fault = "holes"     // now and then an insert is rolled back: its id never comes
	Dup       Fault = "dup"       // now and then a message comes twice
	Late      Fault = "late"      // now and then a row is committed seconds after its id was taken (contract §8.31)
	Malformed Fault = "malformed" // now and then there is a row that is no message
)

// AllFaults lists the faults.
func AllFaults() []Fault { return []Fault{Holes, Dup, Late, Malformed} }

// period is how many messages apart a fault comes; different primes, so that the faults meet in every way in time.
func (f Fault) period() int {
	switch f {
	case Holes:
		return 23
	case Dup:
		return 29
	case Late:
		return 37
	case Malformed:
		return 41
	}
	return 0
}

// Counts say what a Writer has written.
type Counts struct {
	Messages   int                  `json:"messages"` // of the stream
	Rows       int                  `json:"rows"`     // committed: the messages, duplicates and malformed ones
	Holes      int                  `json:"holes"`
	Duplicates int                  `json:"duplicates"`
	Late       int                  `json:"late"`
	Malformed  int                  `json:"malformed"`
	Kinds      map[message.Kind]int `json:"kinds"` // of the messages of the stream
}

// Writer writes a stream into a mailbox.
type Writer struct {
	Stream  *Generator
	Mailbox Mailbox
	Rate    float64       // messages a second; 0 = as fast as the mailbox takes them
	Count   int           // stop after so many messages of the stream; 0 = never
	For     time.Duration // stop after so long; 0 = never
	Faults  []Fault
	Now     func() time.Time // default time.Now
	// Progress is told the counts after each transaction; may be nil. It must not keep Kinds.
	Progress func(Counts)
}

// A transaction holds at most so many rows, and stops taking more once their text is so long.
const (
	maxBatchRows  = 100
	maxBatchBytes = 1 << 20
)

// Run writes until Count or For is reached or ctx ends, none of which is an error, and says what it wrote. On an error the
// counts are those of what was certainly committed. It must not be called again.
func (w *Writer) Run(ctx context.Context) (Counts, error) {
	if w.Now == nil {
		w.Now = time.Now
	}
	r := run{Writer: w, start: w.Now(), counts: Counts{Kinds: map[message.Kind]int{}}}
	err := r.all(ctx)
	err = errors.Join(err, r.commitLate(r.latest())) // whatever happened, rows that were taken come
	counts := r.counts
	counts.Kinds = maps.Clone(counts.Kinds)
	if err != nil && ctx.Err() == nil {
		return counts, fmt.Errorf("simulator: %w", err)
	}
	return counts, nil
}

// run is the state of one Run.
type run struct {
	*Writer
	start  time.Time
	taken  int // messages taken from the stream
	counts Counts
	batch  []Row
	kinds  []message.Kind // of the batch's messages of the stream
	bytes  int
	late   []lateRow // soonest first
}

// lateRow is a row to be committed at a later time.
type lateRow struct {
	at   time.Time
	kind message.Kind
	Pending
}

func (r *run) all(ctx context.Context) error {
	for {
		due, err := r.due(ctx)
		if err != nil || due == 0 {
			return err
		}
		for range due {
			if err := r.take(ctx); err != nil {
				return err
			}
		}
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
}

// due waits until messages are due and says how many; 0 is the end.
func (r *run) due(ctx context.Context) (int, error) {
	for {
		now := r.Now()
		if err := r.commitLate(now); err != nil {
			return 0, err
		}
		elapsed := now.Sub(r.start)
		if r.over(ctx, elapsed) {
			return 0, nil
		}
		due := maxBatchRows
		if r.Rate > 0 {
			due = min(due, 1+int(elapsed.Seconds()*r.Rate)-r.taken)
		}
		if r.Count > 0 {
			due = min(due, r.Count-r.taken)
		}
		if due > 0 {
			return due, nil
		}
		r.wait(ctx, now)
	}
}

// over says that nothing more is to be written.
func (r *run) over(ctx context.Context, elapsed time.Duration) bool {
	return ctx.Err() != nil || r.For > 0 && elapsed >= r.For || r.Count > 0 && r.taken >= r.Count
}

// wait sleeps until the next message or late commit is due, or it is over.
func (r *run) wait(ctx context.Context, now time.Time) {
	until := r.start.Add(time.Duration(float64(r.taken) / r.Rate * float64(time.Second)))
	if len(r.late) > 0 && r.late[0].at.Before(until) {
		until = r.late[0].at
	}
	if end := r.start.Add(r.For); r.For > 0 && end.Before(until) {
		until = end
	}
	timer := time.NewTimer(max(until.Sub(now), time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// take puts the next message into the batch, with the faults that are due at it.
func (r *run) take(ctx context.Context) error {
	m := r.Stream.Next()
	r.taken++
	row := Row{Text: m.Text, ReceivedAt: r.Now()}
	if r.fails(Holes) {
		if err := r.hole(ctx, row); err != nil {
			return err
		}
	}
	if r.fails(Malformed) {
		if err := r.add(ctx, "", Row{Text: spoil(m.Text, r.counts.Malformed), ReceivedAt: row.ReceivedAt}); err != nil {
			return err
		}
		r.counts.Malformed++
	}
	if r.fails(Late) {
		return r.open(ctx, m.Kind, row)
	}
	if err := r.add(ctx, m.Kind, row); err != nil {
		return err
	}
	if r.fails(Dup) {
		r.counts.Duplicates++
		return r.add(ctx, "", row)
	}
	return nil
}

func (r *run) fails(f Fault) bool { return slices.Contains(r.Faults, f) && r.taken%f.period() == 0 }

// add puts a row into the batch; kind is empty when it is no message of the stream.
func (r *run) add(ctx context.Context, kind message.Kind, row Row) error {
	r.batch, r.bytes = append(r.batch, row), r.bytes+len(row.Text)
	if kind != "" {
		r.kinds = append(r.kinds, kind)
	}
	if r.bytes < maxBatchBytes {
		return nil
	}
	return r.flush(ctx)
}

// flush commits the batch. It finishes also when ctx ends meanwhile: a batch is never half known.
func (r *run) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := r.Mailbox.Insert(ctx, r.batch); err != nil {
		return fmt.Errorf("insert %d rows: %w", len(r.batch), err)
	}
	r.committed(len(r.batch), r.kinds...)
	r.batch, r.kinds, r.bytes = r.batch[:0], r.kinds[:0], 0
	return nil
}

// writeTimeout bounds one transaction.
const writeTimeout = 30 * time.Second

func (r *run) committed(rows int, kinds ...message.Kind) {
	r.counts.Rows += rows
	r.counts.Messages += len(kinds)
	for _, k := range kinds {
		r.counts.Kinds[k]++
	}
	if r.Progress != nil {
		r.Progress(r.counts)
	}
}

// hole takes an id for good: the row is rolled back.
func (r *run) hole(ctx context.Context, row Row) error {
	p, err := r.begin(ctx, row)
	if err != nil {
		return err
	}
	r.counts.Holes++
	return p.Rollback()
}

// maxLate is how many transactions are open at once: each holds a connection, and pools are small.
const maxLate = 3

// open takes an id now and leaves the commit for later.
func (r *run) open(ctx context.Context, kind message.Kind, row Row) error {
	if len(r.late) == maxLate {
		if err := r.commitLate(r.late[0].at); err != nil { // sooner than meant: messages come too fast
			return err
		}
	}
	p, err := r.begin(ctx, row)
	if err != nil {
		return err
	}
	const least, step, steps = time.Second, 700 * time.Millisecond, 4
	delay := least + time.Duration(r.counts.Late%steps)*step
	r.counts.Late++
	r.late = append(r.late, lateRow{at: r.Now().Add(delay), kind: kind, Pending: p})
	slices.SortFunc(r.late, func(a, b lateRow) int { return a.at.Compare(b.at) })
	return nil
}

// begin inserts a row behind the batch. Its transaction outlives ctx: the Writer itself ends it.
func (r *run) begin(ctx context.Context, row Row) (Pending, error) {
	if err := r.flush(ctx); err != nil {
		return nil, err
	}
	p, err := r.Mailbox.Begin(context.WithoutCancel(ctx), row)
	if err != nil {
		return nil, fmt.Errorf("insert a row: %w", err)
	}
	return p, nil
}

// commitLate commits what was to be committed by now.
func (r *run) commitLate(now time.Time) error {
	var errs []error
	for len(r.late) > 0 && !r.late[0].at.After(now) {
		if err := r.late[0].Commit(); err != nil {
			errs = append(errs, fmt.Errorf("commit a late row: %w", err))
		} else {
			r.committed(1, r.late[0].kind)
		}
		r.late = r.late[1:]
	}
	return errors.Join(errs...)
}

// latest is the time by which every late row is due.
func (r *run) latest() time.Time {
	if len(r.late) == 0 {
		return time.Time{}
	}
	return r.late[len(r.late)-1].at
}
