package maintenance

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/sentinel"
)

// MarkReader is where the sentinel sees whether marks are still there.
type MarkReader interface {
	// Unmarked gives those of the rows that are in the mailbox and have no mark.
	Unmarked(ctx context.Context, ids []int64) ([]int64, error)
}

// SentinelConfig says what is looked at.
type SentinelConfig struct {
	Lane  string
	Share float64       // of all flights, 0 … 1; 1 is every one
	Marks bool          // marks are written: not in a shadow
	Kept  time.Duration // how long events and messages are kept at least (archive.keep)
	// Zone and CutoffHour are the operation day's: each day has another sample.
	Zone       *time.Location
	CutoffHour int
}

// Sentinel compares flights with what should agree with them and keeps what does not (consistency_difference). It looks at
// flights in doubt first, whatever the share, so that what was mended is forgotten. Before that it sees to it that every event that
// waits can be found. It changes nothing else.
type Sentinel struct {
	config SentinelConfig
	base
	mailbox MarkReader
	log     *slog.Logger

	mu   sync.Mutex
	from sentinelPlace // where this pass has come
}

// sentinelPlace is an event, or a FLID, in one of the three walks of a pass.
type sentinelPlace struct {
	found bool // the events are through
	sure  bool // the flights in doubt are, too
	id    int64
}

const (
	sentinelFind  = 20_000 // events of one step
	sentinelPage  = 5000   // ids of one step, of which the sample is taken
	sentinelChunk = 250    // flights in memory at a time, in one snapshot
)

// NewSentinel makes it; mailbox may be nil when no marks are written.
func NewSentinel(c SentinelConfig, pool *pgxpool.Pool, s *store.Store, mailbox MarkReader, log *slog.Logger, now func() time.Time) *Sentinel {
	return &Sentinel{config: c, base: base{pool, s, now}, mailbox: mailbox, log: log}
}

// Do looks at the next events or flights of this pass; a pass ends with the last FLID, or is begun anew after a failure.
func (w *Sentinel) Do(ctx context.Context) (Piece, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Piece{Report: Report{Counts: map[string]int64{}}}
	next, err := w.step(ctx, w.from, &p)
	if err != nil {
		w.from = sentinelPlace{}
		return p, err
	}
	w.from, p.More = next, next != sentinelPlace{}
	return p, nil
}

// step looks at one page of one of the walks and gives the place after it, zero at the end.
func (w *Sentinel) step(ctx context.Context, at sentinelPlace, p *Piece) (next sentinelPlace, err error) {
	if !at.found {
		return w.find(ctx, at, p)
	}
	ids, limit := w.store.FlightsInDoubt, sentinelChunk
	if at.sure {
		ids, limit = w.store.FlightIDs, sentinelPage
	}
	flids, err := ids(ctx, w.pool, at.id, limit)
	if err != nil {
		return next, err
	}
	if len(flids) == limit {
		next = sentinelPlace{found: true, sure: at.sure, id: flids[limit-1]}
	} else if !at.sure {
		next = sentinelPlace{found: true, sure: true}
	}
	if at.sure {
		today := string(flight.DayOf(w.now(), w.config.Zone, w.config.CutoffHour))
		flids = slices.DeleteFunc(flids, func(flid int64) bool { return !sentinel.Sampled(flid, today, w.config.Share) })
	}
	for chunk := range slices.Chunk(flids, sentinelChunk) {
		if err := w.look(ctx, chunk, p); err != nil {
			return next, err
		}
	}
	return next, nil
}

// find looks at a page of events.
func (w *Sentinel) find(ctx context.Context, at sentinelPlace, p *Piece) (next sentinelPlace, err error) {
	lost, last, err := w.store.MendSpans(ctx, w.pool, at.id, sentinelFind)
	if err != nil {
		return next, err
	}
	if lost > 0 {
		p.Counts["eventsFound"] += lost
		w.log.ErrorContext(ctx, "waiting events found", "count", lost, "up_to", last)
	}
	return sentinelPlace{found: last == 0, id: last}, nil
}

// look compares some flights and keeps what it found.
func (w *Sentinel) look(ctx context.Context, flids []int64, p *Piece) error {
	now := w.now()
	var all []sentinel.Evidence
	err := db.InSnapshot(ctx, w.pool, func(tx pgx.Tx) (err error) {
		all, err = w.store.Evidence(ctx, tx, flids)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.readMarks(ctx, all, p); err != nil {
		return err
	}
	var found []sentinel.Difference
	for _, e := range all {
		found = append(found, sentinel.Compare(e, sentinel.Policy{Marks: w.config.Marks, Kept: now.Add(-w.config.Kept)})...)
	}
	var opened, closed []sentinel.Difference
	err = db.InTx(ctx, w.pool, func(tx pgx.Tx) (err error) {
		opened, closed, err = w.store.KeepDifferences(ctx, tx, flids, found, now)
		return err
	})
	if err != nil {
		return err
	}
	p.Counts["flights"] += int64(len(all))
	p.Counts["differences"] += int64(len(found))
	for _, d := range opened {
		w.log.ErrorContext(ctx, "inconsistency found", "flid", d.FLID, "about", d.About, "detail", d.Detail)
	}
	for _, d := range closed {
		w.log.InfoContext(ctx, "inconsistency gone", "flid", d.FLID, "about", d.About)
	}
	return nil
}

// readMarks asks the mailbox about the messages whose mark we have written. Without the mailbox the rest is compared all the
// same. Ids of earlier generations, or of a lane that is stopped over its ids, may stand for other messages now.
func (w *Sentinel) readMarks(ctx context.Context, all []sentinel.Evidence, p *Piece) error {
	if !w.config.Marks {
		return nil
	}
	in, _, err := w.store.Inbox(ctx, w.pool, w.config.Lane)
	if err != nil || in.Stopped != "" {
		return err
	}
	byID := map[int64][]*sentinel.Evidence{}
	for i := range all {
		e := &all[i]
		if e.Flight != nil && e.Message != nil && e.Message.Marked && e.Flight.LastMessage.Generation == in.Cursor.Generation {
			byID[e.Flight.LastMessage.ID] = append(byID[e.Flight.LastMessage.ID], e)
		}
	}
	unmarked, err := w.mailbox.Unmarked(ctx, slices.Sorted(maps.Keys(byID)))
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		p.Counts["marksUnread"] += int64(len(byID))
		w.log.WarnContext(ctx, "marks not compared", "error", fault.Text(err))
		return nil
	}
	for _, id := range unmarked {
		for _, e := range byID[id] {
			e.Unmarked = true
		}
	}
	return nil
}
