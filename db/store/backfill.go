package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/message"
)

// ClaimDebts takes up to limit marks that are due, fewest tries first, and counts the try. Until then nobody else takes
// them, and a replay leaves their messages alone. A lane that is stopped gives none.
func (s *Store) ClaimDebts(ctx context.Context, tx pgx.Tx, lane string, limit int, now, until time.Time) ([]backfill.Debt, error) {
	rows, err := s.q.ClaimDebts(ctx, tx, pgq.ClaimDebtsParams{Lane: lane, Now: &now, ClaimedUntil: &until, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("claim marks owed: %w", db.Classify(err))
	}
	out := make([]backfill.Debt, len(rows))
	for i, r := range rows {
		out[i] = backfill.Debt{
			Pos:        message.Position{Generation: r.Generation, ID: r.MsgID},
			State:      message.State(r.State),
			SkipReason: orEmpty(r.SkipReason),
			ReceivedAt: orZero(r.ReceivedAt),
			Attempts:   int(r.BackfillAttempts),
			Replays:    int(r.ReplayCount),
		}
		if r.Seqn != nil {
			out[i].Meta = message.Meta{SNDR: orEmpty(r.Sndr), SEQN: *r.Seqn, DTTM: orZero(r.Dttm), TYPE: orEmpty(r.Type), STYP: orEmpty(r.Styp)}
		}
	}
	return out, nil
}

// SettleDebts writes what became of claimed debts, where they are still the same, and says of how many.
func (s *Store) SettleDebts(ctx context.Context, tx pgx.Tx, all []backfill.Settlement, now time.Time) (int64, error) {
	p := pgq.SettleDebtsParams{Now: &now}
	for _, a := range all {
		p.Ids = append(p.Ids, a.Debt.Pos.ID)
		p.Generations = append(p.Generations, a.Debt.Pos.Generation)
		p.ReplayCounts = append(p.ReplayCounts, int32(a.Debt.Replays))
		p.Attempts = append(p.Attempts, int32(a.Debt.Attempts))
		p.Ats = append(p.Ats, a.At)
		p.NextAts = append(p.NextAts, a.Next)
		p.Errors = append(p.Errors, a.Error)
		p.AbandonedAts = append(p.AbandonedAts, a.AbandonedAt)
		p.Reasons = append(p.Reasons, string(a.Reason))
	}
	n, err := s.q.SettleDebts(ctx, tx, p)
	if err != nil {
		return 0, fmt.Errorf("settle marks: %w", db.Classify(err))
	}
	return n, nil
}

// Resumed is what an operator's wish to have a mark tried again came to.
type Resumed struct {
	ID      int64
	Known   bool // there is such a message, perhaps in the archive
	Resumed bool
	Why     string // not resumed though known
}

// ResumeDebts makes the marks of the messages named due at once, with no tries spent, and answers each id in its order. A
// mark that is written, was never wanted, or is being written at this moment stays as it is.
func (s *Store) ResumeDebts(ctx context.Context, tx pgx.Tx, ids []int64, now time.Time) ([]Resumed, error) {
	rows, err := s.q.ResumeDebts(ctx, tx, pgq.ResumeDebtsParams{Ids: ids, Now: &now})
	if err != nil {
		return nil, fmt.Errorf("resume marks: %w", db.Classify(err))
	}
	out := make([]Resumed, len(rows))
	for i, r := range rows {
		out[i] = Resumed{ID: r.MsgID, Known: r.Known || r.Archived, Resumed: r.Resumed}
		if !r.Resumed && out[i].Known {
			out[i].Why = whyNotResumed(r)
		}
	}
	return out, nil
}

func whyNotResumed(r pgq.ResumeDebtsRow) string {
	switch {
	case !r.Known:
		return "archived"
	case r.Unfinished:
		return "not finished: no mark is owed yet"
	case r.Written:
		return "already written"
	case !r.Owed:
		return "no mark is wanted"
	}
	return "being written at this moment"
}

// NextDebt is when the next mark is due; zero when none is owed.
func (s *Store) NextDebt(ctx context.Context, q db.Querier) (time.Time, error) {
	due, err := s.q.NextDebt(ctx, q)
	if err != nil || len(due) == 0 {
		return time.Time{}, db.Classify(err)
	}
	return orZero(due[0]), nil
}

// LineCrowded says whether at least crowd messages are unfinished.
func (s *Store) LineCrowded(ctx context.Context, q db.Querier, crowd int) (bool, error) {
	ok, err := s.q.LineCrowded(ctx, q, int64(crowd))
	return ok, db.Classify(err)
}

// DebtPending says whether any mark is owed that is not given up.
func (s *Store) DebtPending(ctx context.Context, q db.Querier) (bool, error) {
	ok, err := s.q.DebtPending(ctx, q)
	return ok, db.Classify(err)
}

// DebtStats are the gauges of marks.
type DebtStats struct {
	Owed      int64
	OldestAge time.Duration // since the oldest of their messages ended; 0 when none is owed
	Abandoned int64
}

// DebtStats counts the marks owed and given up.
func (s *Store) DebtStats(ctx context.Context, q db.Querier, now time.Time) (DebtStats, error) {
	owed, err := s.q.DebtStats(ctx, q, now)
	if err != nil {
		return DebtStats{}, fmt.Errorf("count marks owed: %w", db.Classify(err))
	}
	abandoned, err := s.q.AbandonedDebts(ctx, q)
	if err != nil {
		return DebtStats{}, fmt.Errorf("count marks given up: %w", db.Classify(err))
	}
	return DebtStats{Owed: owed.Owed, OldestAge: age(owed.Owed, owed.Oldest, now), Abandoned: abandoned}, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
