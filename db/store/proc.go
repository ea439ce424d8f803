package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
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

// Head gives the next unfinished messages of a lane in order, none past the watermark (O1).
func (s *Store) Head(ctx context.Context, q db.Querier, lane string, limit int) ([]Unfinished, error) {
	rows, err := s.q.HeadRows(ctx, q, pgq.HeadRowsParams{Lane: lane, MaxRows: int32(limit)})
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

// Finish writes where each message goes. It changes unfinished rows only and says how many it changed.
func (s *Store) Finish(ctx context.Context, tx pgx.Tx, all []Finished, now time.Time) (int64, error) {
	rows := make([]finishRow, len(all))
	for i, f := range all {
		rows[i] = f.row(now)
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return 0, fault.Wrap(fault.Infra, "write message states", err)
	}
	n, err := s.q.FinishMessages(ctx, tx, pgq.FinishMessagesParams{Now: now, Rows: b})
	if err != nil {
		return 0, fmt.Errorf("write message states: %w", db.Classify(err))
	}
	return n, nil
}

// finishRow is Finished as FinishMessages reads it; nil is NULL.
type finishRow struct {
	MsgID     int64          `json:"msg_id"`
	State     message.State  `json:"state"`
	Reset     bool           `json:"reset"`
	Class     *fault.Class   `json:"error_class"`
	Root      *fault.Class   `json:"root_error_class"`
	LastError *string        `json:"last_error"`
	Skip      *string        `json:"skip_reason"`
	Identity  *string        `json:"identity_key"`
	Reuse     *message.Reuse `json:"identity_reuse"`
	Next      *time.Time     `json:"next_attempt_at"`
	Finished  *time.Time     `json:"finished_at"`
	Mark      *time.Time     `json:"backfill_next_at"`
	Hash      *string        `json:"content_hash"`
	SNDR      *string        `json:"sndr"`
	TYPE      *string        `json:"type"`
	STYP      *string        `json:"styp"`
	SEQN      *int64         `json:"seqn"`
	DTTM      *time.Time     `json:"dttm"`
}

func (f Finished) row(now time.Time) finishRow {
	r := finishRow{
		MsgID: f.ID, State: f.State, Reset: f.Reset,
		Class: orNil(f.Class), Root: orNil(f.Root), Skip: orNil(f.Skip), Identity: orNil(f.Bound), Reuse: orNil(f.Reuse),
		Next: timeOrNil(f.Next),
	}
	if f.Err != nil {
		text := fault.Text(f.Err)
		r.LastError = &text
	}
	if f.State.Terminal() {
		r.Finished = &now
		if f.Mark {
			r.Mark = &now
		}
	}
	if f.HasMeta {
		hash := byteaText(f.Hash[:])
		r.Hash, r.SNDR, r.TYPE, r.STYP, r.SEQN, r.DTTM = &hash, &f.Meta.SNDR, &f.Meta.TYPE, &f.Meta.STYP, &f.Meta.SEQN, &f.Meta.DTTM
	}
	return r
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
	type row struct {
		Key  string    `json:"identity_key"`
		ID   int64     `json:"msg_id"`
		Gen  int32     `json:"generation"`
		DTTM time.Time `json:"dttm"`
		Hash string    `json:"content_hash"`
	}
	rows := make([]row, len(ids))
	for i, id := range ids {
		rows[i] = row{id.Key, id.Pos.ID, id.Pos.Generation, id.DTTM, byteaText(id.Hash[:])}
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return fault.Wrap(fault.Infra, "bind identities", err)
	}
	return db.Classify(s.q.BindIdentities(ctx, tx, pgq.BindIdentitiesParams{Now: now, Rows: b}))
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

func byteaText(b []byte) string { return `\x` + hex.EncodeToString(b) }

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
