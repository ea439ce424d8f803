package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
)

// Inbox is a lane's row of inbox_cursor with the holes above it.
type Inbox struct {
	Cursor   inbox.Cursor
	SeededAt time.Time  // zero: never seeded
	Stopped  inbox.Stop // empty: it runs
	PolledAt time.Time  // zero: never
}

// Inbox reads where a lane stands; ok is false when it has no row yet.
func (s *Store) Inbox(ctx context.Context, q db.Querier, lane string) (in Inbox, ok bool, err error) {
	rows, err := s.q.Inbox(ctx, q, lane)
	if err != nil {
		return Inbox{}, false, fmt.Errorf("read the inbox cursor: %w", db.Classify(err))
	}
	for _, r := range rows {
		in.Cursor.Generation, in.Cursor.W, in.Cursor.Step = r.Generation, r.CommittedUpTo, int64(r.IDStep)
		in.Cursor.ReceivedAt = orZero(r.WatermarkReceivedAt)
		in.SeededAt, in.PolledAt = orZero(r.SeededAt), orZero(r.LastPolledAt)
		if r.StoppedReason != nil {
			in.Stopped = inbox.Stop(*r.StoppedReason)
		}
		if r.FirstID != nil {
			h := inbox.Hole{Range: inbox.Range{First: *r.FirstID, Last: *r.LastID}, FirstSeen: *r.FirstSeenAt}
			in.Cursor.Holes = append(in.Cursor.Holes, h)
		}
	}
	return in, len(rows) > 0, nil
}

// Relax lets tx commit without waiting for the disk: for work that is simply done again when a crash of PostgreSQL takes it.
// Whatever commits after it and does wait makes it durable too.
func (s *Store) Relax(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off")
	return db.Classify(err)
}

// LockInbox locks the lane's row until the end of tx and says whether it still stands where c does, and runs.
func (s *Store) LockInbox(ctx context.Context, tx pgx.Tx, lane string, c inbox.Cursor) (bool, error) {
	r, err := s.q.LockInbox(ctx, tx, lane)
	if err != nil {
		return false, fmt.Errorf("lock the inbox cursor: %w", db.Classify(err))
	}
	return r.Generation == c.Generation && r.CommittedUpTo == c.W && r.StoppedReason == nil, nil
}

// SaveInbox writes where a round has brought the lane: the cursor, its holes, and those it passed. The row is locked.
func (s *Store) SaveInbox(ctx context.Context, tx pgx.Tx, lane string, before inbox.Cursor, p inbox.Plan, now time.Time) error {
	c := p.Cursor
	err := s.q.SaveInbox(ctx, tx, pgq.SaveInboxParams{
		Lane: lane, CommittedUpTo: c.W, WatermarkReceivedAt: timeOrNil(c.ReceivedAt), IDStep: int32(c.Step), Now: &now,
	})
	if err != nil {
		return fmt.Errorf("move the watermark: %w", db.Classify(err))
	}
	if slices.Equal(before.Holes, c.Holes) && len(p.Released) == 0 {
		return nil
	}
	if err := s.q.DeleteOpenHoles(ctx, tx, pgq.DeleteOpenHolesParams{Lane: lane, Generation: c.Generation}); err != nil {
		return fmt.Errorf("save holes: %w", db.Classify(err))
	}
	if err := s.insertHoles(ctx, tx, lane, c.Generation, c.Holes, time.Time{}); err != nil {
		return err
	}
	return s.insertHoles(ctx, tx, lane, c.Generation, p.Released, now)
}

// InboxPolled notes that the mailbox could be read at now.
func (s *Store) InboxPolled(ctx context.Context, tx pgx.Tx, lane string, now time.Time) error {
	return db.Classify(s.q.InboxPolled(ctx, tx, pgq.InboxPolledParams{Lane: lane, Now: &now}))
}

// SeedInbox lets a lane that was never seeded and has taken nothing over begin there; what it waits for is forgotten. done
// is false when it is not such a lane.
func (s *Store) SeedInbox(ctx context.Context, tx pgx.Tx, lane string, at inbox.Start, now time.Time) (done bool, err error) {
	from := string(at.From)
	n, err := s.q.SeedInbox(ctx, tx, pgq.SeedInboxParams{
		Lane: lane, CommittedUpTo: at.W, WatermarkReceivedAt: timeOrNil(at.ReceivedAt), SeededFrom: &from, Now: &now,
	})
	if err != nil || n == 0 {
		return false, db.Classify(err)
	}
	if err := s.q.DeleteHoles(ctx, tx, lane); err != nil {
		return false, fmt.Errorf("forget holes: %w", db.Classify(err))
	}
	return true, s.insertHoles(ctx, tx, lane, 0, at.Missing, now)
}

// StopInbox stops the lane; first is false when it was stopped before. Messages registered ahead of the watermark are
// released to the head, which has to be woken.
func (s *Store) StopInbox(ctx context.Context, tx pgx.Tx, lane string, generation int32, why inbox.Stop, now time.Time) (first bool, err error) {
	text := string(why)
	n, err := s.q.StopInbox(ctx, tx, pgq.StopInboxParams{Lane: lane, Generation: generation, StoppedReason: &text, Now: &now})
	return n > 0, db.Classify(err)
}

// Closed is what a reseed did with the generation of ids that is over.
type Closed struct {
	Generation int32 // the new one
	Archived   int64 // messages
	Abandoned  int64 // marks that were still owed
}

// What refuses a reseed. Nothing of it may then be kept.
var (
	ErrUnfinished = errors.New("messages are unfinished")
	ErrMarking    = errors.New("marks are being written at this moment")
)

// reseedTimeout replaces statement_timeout in a reseed, which moves all there is.
const reseedTimeout = "SET LOCAL statement_timeout = '2min'"

// ReseedInbox ends the lane's generation of ids and begins the next one there: finished messages go to the archive, marks
// still owed are given up, holes are forgotten, and a stopped lane runs again. All or nothing, in tx, so that reused ids
// never meet rows of the ids before them. ErrUnfinished and ErrMarking refuse it.
func (s *Store) ReseedInbox(ctx context.Context, tx pgx.Tx, lane string, at inbox.Start, now time.Time) (c Closed, err error) {
	if _, err := tx.Exec(ctx, reseedTimeout); err != nil {
		return c, fmt.Errorf("reseed: %w", db.Classify(err))
	}
	if _, err := s.q.LockInbox(ctx, tx, lane); err != nil { // from here on nobody enqueues
		return c, fmt.Errorf("lock the inbox cursor: %w", db.Classify(err))
	}
	if err := s.allFinished(ctx, tx, now); err != nil {
		return c, err
	}
	old, err := s.q.CloseGeneration(ctx, tx, pgq.CloseGenerationParams{Now: &now, Reason: string(backfill.GenerationClosed)})
	if err != nil {
		return c, fmt.Errorf("close the generation of ids: %w", db.Classify(err))
	}
	if old.Claimed > 0 {
		return c, fmt.Errorf("%w: %d of the %d owed", ErrMarking, old.Claimed, old.Abandoned)
	}
	if err := s.allFinished(ctx, tx, now); err != nil { // put back meanwhile
		return c, err
	}
	if err := s.q.DeleteHoles(ctx, tx, lane); err != nil {
		return c, fmt.Errorf("forget holes: %w", db.Classify(err))
	}
	from := string(at.From)
	c = Closed{Archived: old.Moved, Abandoned: old.Abandoned}
	c.Generation, err = s.q.OpenGeneration(ctx, tx, pgq.OpenGenerationParams{
		Lane: lane, CommittedUpTo: at.W, WatermarkReceivedAt: timeOrNil(at.ReceivedAt), SeededFrom: &from, Now: &now,
	})
	if err != nil {
		return c, fmt.Errorf("open the generation of ids: %w", db.Classify(err))
	}
	return c, s.insertHoles(ctx, tx, lane, c.Generation, at.Missing, now)
}

func (s *Store) allFinished(ctx context.Context, tx pgx.Tx, now time.Time) error {
	left, err := s.Backlog(ctx, tx, now)
	if err == nil && left.Unfinished > 0 {
		err = fmt.Errorf("%w: %d of them", ErrUnfinished, left.Unfinished)
	}
	return err
}

// Incoming is a mailbox row about to become a PENDING message.
type Incoming struct {
	inbox.Row
	body []byte
	size int32
}

// textGone is the size that makes EnqueueMessages keep no text.
const textGone = -1

// Incoming packs a message for Enqueue.
func (s *Store) Incoming(m inbox.Message) Incoming {
	if m.Oversize {
		return Incoming{m.Row, []byte{}, int32(m.Size)}
	}
	return Incoming{m.Row, s.zip.pack(m.Text), int32(m.Size)}
}

// Gone is the row of a message whose text was deleted between two looks at the mailbox.
func Gone(r inbox.Row) Incoming { return Incoming{Row: r, size: textGone} }

// PackedBytes is what the row takes in memory.
func (in Incoming) PackedBytes() int { return len(in.body) }

// Enqueue makes the rows PENDING messages, with their texts. Rows known already are left alone. It gives the new ids.
func (s *Store) Enqueue(ctx context.Context, tx pgx.Tx, generation int32, rows []Incoming, late bool, now time.Time) ([]int64, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	p := pgq.EnqueueMessagesParams{Generation: generation, Late: late, Now: now}
	for _, r := range rows {
		p.Ids = append(p.Ids, r.ID)
		p.ReceivedAt = append(p.ReceivedAt, r.ReceivedAt)
		p.Bodies = append(p.Bodies, r.body)
		p.Sizes = append(p.Sizes, r.size)
	}
	ids, err := s.q.EnqueueMessages(ctx, tx, p)
	if err != nil {
		return nil, fmt.Errorf("enqueue messages: %w", db.Classify(err))
	}
	return ids, nil
}

// Register makes one row above the watermark a PENDING message ahead of the poller; done is false when the lane does not
// allow it or has it already.
func (s *Store) Register(ctx context.Context, tx pgx.Tx, lane string, m Incoming, now time.Time) (done bool, err error) {
	n, err := s.q.RegisterMessage(ctx, tx, pgq.RegisterMessageParams{Lane: lane, MsgID: m.ID, ReceivedAt: timeOrNil(m.ReceivedAt), Now: now})
	if err != nil || n == 0 {
		return false, db.Classify(err)
	}
	err = s.q.InsertRaw(ctx, tx, pgq.InsertRawParams{MsgID: m.ID, Body: m.body, SizeBytes: m.size, Now: now})
	return err == nil, db.Classify(err)
}

// PassedHoles gives the newest holes the watermark has passed, ascending, and since when the longest passed of them is.
func (s *Store) PassedHoles(ctx context.Context, q db.Querier, lane string, generation int32, limit int) (out []inbox.Hole, since time.Time, err error) {
	rows, err := s.q.PassedHoles(ctx, q, pgq.PassedHolesParams{Lane: lane, Generation: generation, MaxRows: int32(limit)})
	if err != nil {
		return nil, since, fmt.Errorf("read passed holes: %w", db.Classify(err))
	}
	out = make([]inbox.Hole, len(rows))
	for i, r := range rows {
		out[len(rows)-1-i] = inbox.Hole{Range: inbox.Range{First: r.FirstID, Last: r.LastID}, FirstSeen: r.FirstSeenAt}
		if at := orZero(r.ReleasedAt); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return out, since, nil
}

// PrunePassedHoles forgets holes passed before then, and all but the newest keep, and says how many.
func (s *Store) PrunePassedHoles(ctx context.Context, tx pgx.Tx, lane string, generation int32, before time.Time, keep int) (int64, error) {
	n, err := s.q.PrunePassedHoles(ctx, tx, pgq.PrunePassedHolesParams{Lane: lane, Generation: generation, ReleasedBefore: &before, Keep: int32(keep)})
	return n, db.Classify(err)
}

// ReplacePassedHoles puts what remains of passed holes in their place.
func (s *Store) ReplacePassedHoles(ctx context.Context, tx pgx.Tx, lane string, generation int32, before, remaining []inbox.Hole, now time.Time) error {
	err := s.q.DeletePassedHoles(ctx, tx, pgq.DeletePassedHolesParams{Lane: lane, Generation: generation, FirstIds: firstIDs(before)})
	if err != nil {
		return fmt.Errorf("save passed holes: %w", db.Classify(err))
	}
	return s.insertHoles(ctx, tx, lane, generation, remaining, now)
}

func (s *Store) insertHoles(ctx context.Context, tx pgx.Tx, lane string, generation int32, holes []inbox.Hole, released time.Time) error {
	if len(holes) == 0 {
		return nil
	}
	p := pgq.InsertHolesParams{Lane: lane, Generation: generation, FirstIds: firstIDs(holes), ReleasedAt: timeOrNil(released)}
	for _, h := range holes {
		p.LastIds = append(p.LastIds, h.Last)
		p.FirstSeenAt = append(p.FirstSeenAt, h.FirstSeen)
	}
	if err := s.q.InsertHoles(ctx, tx, p); err != nil {
		return fmt.Errorf("save holes: %w", db.Classify(err))
	}
	return nil
}

func firstIDs(holes []inbox.Hole) []int64 {
	out := make([]int64, len(holes))
	for i, h := range holes {
		out[i] = h.First
	}
	return out
}

// Held is what we hold of a row taken over, with its text while we keep that.
type Held struct {
	inbox.Memory
	Text []byte // nil: not kept
}

// Memories says what we hold of each of the rows: a text of ours that is gone counts as the same.
func (s *Store) Memories(ctx context.Context, q db.Querier, generation int32, rows []inbox.Message) (map[int64]Held, error) {
	ids := make([]int64, len(rows))
	at := make([]message.Position, len(rows))
	for i, r := range rows {
		ids[i], at[i] = r.ID, message.Position{Generation: generation, ID: r.ID}
	}
	known, err := s.q.KnownMessages(ctx, q, pgq.KnownMessagesParams{Generation: generation, Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("read known messages: %w", db.Classify(err))
	}
	raws, err := s.RawTexts(ctx, q, at)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]Held, len(rows))
	for _, k := range known {
		out[k.MsgID] = Held{Memory: inbox.Memory{Known: true, ReceivedAt: orZero(k.ReceivedAt), SameText: true}}
	}
	for i, r := range rows {
		h, raw := out[r.ID], raws[at[i]]
		if _, kept := raws[at[i]]; kept && h.Known {
			h.Text = raw.Text
			h.SameText = raw.SizeBytes == r.Size && (raw.Oversize || r.Oversize || string(raw.Text) == r.Text)
			out[r.ID] = h
		}
	}
	return out, nil
}

// Unknown gives those of the ids that were never taken over in the generation.
func (s *Store) Unknown(ctx context.Context, q db.Querier, generation int32, ids []int64) ([]int64, error) {
	known, err := s.q.KnownMessages(ctx, q, pgq.KnownMessagesParams{Generation: generation, Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("read known messages: %w", db.Classify(err))
	}
	held := make(map[int64]bool, len(known))
	for _, k := range known {
		held[k.MsgID] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return held[id] }), nil
}

// InboxRuns says whether the lane takes anything over: it is not stopped.
func (s *Store) InboxRuns(ctx context.Context, q db.Querier, lane string) (bool, error) {
	ok, err := s.q.InboxRuns(ctx, q, lane)
	return ok, db.Classify(err)
}
