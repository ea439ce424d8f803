package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Unfinished is a row of proc_state that still holds its place in the line.
type Unfinished struct {
	Pos         message.Position
	State       message.State // PENDING or FAILED
	Attempts    int
	NextAttempt time.Time // zero: at once
	Started     time.Time // zero: never tried
	ReceivedAt  time.Time // zero: the mailbox did not say
	CreatedAt   time.Time
	SizeBytes   int64 // of the text; 0 when we do not have it
}

// Head gives the next unfinished messages of a lane with ids above after in order, none past the watermark (O1).
func (s *Store) Head(ctx context.Context, q db.Querier, lane string, after int64, limit int) ([]Unfinished, error) {
	rows, err := s.q.HeadRows(ctx, q, pgq.HeadRowsParams{Lane: lane, After: after, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("read the head: %w", db.Classify(err))
	}
	out := make([]Unfinished, len(rows))
	for i, r := range rows {
		out[i] = Unfinished{
			Pos:         message.Position{Generation: r.Generation, ID: r.MsgID},
			State:       message.State(r.State),
			Attempts:    int(r.Attempts),
			NextAttempt: orZero(r.NextAttemptAt),
			Started:     orZero(r.ProcessingStartedAt),
			ReceivedAt:  orZero(r.ReceivedAt),
			CreatedAt:   r.CreatedAt,
			SizeBytes:   r.SizeBytes,
		}
	}
	return out, nil
}

// UnfinishedAmong says how many of the messages from … to, both inclusive, are unfinished.
func (s *Store) UnfinishedAmong(ctx context.Context, q db.Querier, from, to int64) (int, error) {
	n, err := s.q.UnfinishedAmong(ctx, q, pgq.UnfinishedAmongParams{From: from, To: to})
	return int(n), db.Classify(err)
}

// HeadPending says whether any message at or below the watermark is unfinished, also one in backoff.
func (s *Store) HeadPending(ctx context.Context, q db.Querier, lane string) (bool, error) {
	ok, err := s.q.HeadPending(ctx, q, lane)
	return ok, db.Classify(err)
}

// Backlog is what has not been finished.
type Backlog struct {
	Unfinished    int64
	OldestSeconds float64 // since the oldest was taken over; 0 when there is none
}

// Backlog reads it.
func (s *Store) Backlog(ctx context.Context, q db.Querier, now time.Time) (Backlog, error) {
	r, err := s.q.Backlog(ctx, q, now)
	return Backlog{r.Unfinished, age(r.Unfinished, r.Oldest, now).Seconds()}, db.Classify(err)
}

// age is that of the oldest of n; 0 when there is none. The database's clock may be a little ahead, and keeps fewer digits.
func age(n int64, oldest, now time.Time) time.Duration {
	if n == 0 {
		return 0
	}
	return max(now.Sub(oldest), 0)
}

// Charge puts one attempt on record for each message, before it is tried (O5). The commit need not reach the disk: what
// it must survive is the death of this process, and a PostgreSQL that dies is not the message's fault.
func (s *Store) Charge(ctx context.Context, tx pgx.Tx, ids []int64, now time.Time) error {
	if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
		return db.Classify(err)
	}
	return db.Classify(s.q.ChargeAttempts(ctx, tx, pgq.ChargeAttemptsParams{Now: now, Ids: ids}))
}

// Refund takes the attempt of each message back that Charge has put on record: it could not be read and was not tried.
func (s *Store) Refund(ctx context.Context, tx pgx.Tx, ids []int64, now time.Time) error {
	if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
		return db.Classify(err)
	}
	return db.Classify(s.q.RefundAttempts(ctx, tx, pgq.RefundAttemptsParams{Now: now, Ids: ids}))
}

// Finished is where a message of a batch goes.
type Finished struct {
	ID      int64
	State   message.State
	Reset   bool        // charged but not tried: pays nothing and stays what it was
	Class   fault.Class // of a failure; empty otherwise
	Root    fault.Class
	Err     error  // of a failure, or why it was skipped
	Skip    string // skip_reason
	Next    time.Time
	Mark    bool // a processed mark is owed
	Meta    message.Meta
	Hash    [32]byte
	Bound   string // identity key, once it is this message's
	Reuse   message.Reuse
	HasMeta bool // Meta could be read
}

// Finish makes the statement that writes where each message goes. It changes unfinished rows only and says how many it changed.
func (s *Store) Finish(all []Finished, now time.Time) func(ctx context.Context, tx pgx.Tx) (int64, error) {
	p := pgq.FinishMessagesParams{Now: now}
	for _, f := range all {
		appendFinished(&p, f)
	}
	return func(ctx context.Context, tx pgx.Tx) (int64, error) {
		n, err := s.q.FinishMessages(ctx, tx, p)
		return n, wrapped("write message states", err)
	}
}

func appendFinished(p *pgq.FinishMessagesParams, f Finished) {
	finished := f.State.Terminal()
	p.Ids = append(p.Ids, f.ID)
	p.States = append(p.States, string(f.State))
	p.Resets = append(p.Resets, f.Reset)
	p.Finished = append(p.Finished, finished)
	p.Owed = append(p.Owed, finished && f.Mark)
	p.ErrorClasses = append(p.ErrorClasses, string(f.Class))
	p.RootErrorClasses = append(p.RootErrorClasses, string(f.Root))
	p.LastErrors = append(p.LastErrors, fault.Text(f.Err))
	p.SkipReasons = append(p.SkipReasons, f.Skip)
	p.NextAttemptsAt = append(p.NextAttemptsAt, f.Next)
	p.IdentityKeys = append(p.IdentityKeys, f.Bound)
	p.IdentityReuses = append(p.IdentityReuses, string(f.Reuse))
	p.HaveMeta = append(p.HaveMeta, f.HasMeta)
	p.ContentHashes = append(p.ContentHashes, f.Hash[:])
	p.Sndrs = append(p.Sndrs, f.Meta.SNDR)
	p.Types = append(p.Types, f.Meta.TYPE)
	p.Styps = append(p.Styps, f.Meta.STYP)
	p.Seqns = append(p.Seqns, f.Meta.SEQN)
	p.Dttms = append(p.Dttms, f.Meta.DTTM)
}

// Identity is who holds an identity key.
type Identity struct {
	Key  string
	Pos  message.Position
	DTTM time.Time
	Hash [32]byte
}

// Identities gives the holders of the keys that are taken.
func (s *Store) Identities(ctx context.Context, q db.Querier, keys []string) (map[string]Identity, error) {
	rows, err := s.q.Identities(ctx, q, keys)
	if err != nil {
		return nil, fmt.Errorf("read identities: %w", db.Classify(err))
	}
	out := make(map[string]Identity, len(rows))
	for _, r := range rows {
		id := Identity{Key: r.IdentityKey, Pos: message.Position{Generation: r.Generation, ID: r.MsgID}, DTTM: r.Dttm}
		copy(id.Hash[:], r.ContentHash)
		out[r.IdentityKey] = id
	}
	return out, nil
}

// Bind makes each identity its message's, taking it from another whose counter has wrapped. Each key once.
func (s *Store) Bind(ctx context.Context, tx pgx.Tx, ids []Identity, now time.Time) error {
	p := pgq.BindIdentitiesParams{Now: now}
	for _, id := range ids {
		p.IdentityKeys = append(p.IdentityKeys, id.Key)
		p.MsgIds = append(p.MsgIds, id.Pos.ID)
		p.Generations = append(p.Generations, id.Pos.Generation)
		p.Dttms = append(p.Dttms, id.DTTM)
		p.ContentHashes = append(p.ContentHashes, id.Hash[:])
	}
	return db.Classify(s.q.BindIdentities(ctx, tx, p))
}

// Snapshot is a row of schd_snap_log: one schedule that was applied.
type Snapshot struct {
	Pos                         message.Position
	Kind                        message.Kind
	From, To                    time.Time // earliest and latest SODT; zero when it named no flight
	Records                     int
	Created, Updated, Unchanged int
	ReceivedAt                  time.Time
}

// LogSnapshot keeps the trace of an applied schedule.
func (s *Store) LogSnapshot(ctx context.Context, tx pgx.Tx, n Snapshot) error {
	return db.Classify(s.q.InsertSnapLog(ctx, tx, pgq.InsertSnapLogParams{
		MsgID: n.Pos.ID, Generation: n.Pos.Generation, Kind: string(n.Kind), ScopeStart: timeOrNil(n.From), ScopeEnd: timeOrNil(n.To),
		Records: int32(n.Records), Created: int32(n.Created), Updated: int32(n.Updated), Unchanged: int32(n.Unchanged), RecvAt: n.ReceivedAt,
	}))
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orNil makes the empty text NULL.
func orNil[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}
