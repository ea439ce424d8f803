package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
)

// LockPeriodics gives, by name, up to when the due times of periodic work have been taken, and holds the rows until the end
// of tx. Names nobody has asked for before count as taken up to now.
func (s *Store) LockPeriodics(ctx context.Context, tx pgx.Tx, names []string, now time.Time) (map[string]time.Time, error) {
	if err := s.q.EnsurePeriodics(ctx, tx, pgq.EnsurePeriodicsParams{Names: names, Now: now}); err != nil {
		return nil, fmt.Errorf("make periodic rows: %w", db.Classify(err))
	}
	rows, err := s.q.LockPeriodics(ctx, tx, names)
	if err != nil {
		return nil, fmt.Errorf("lock periodic rows: %w", db.Classify(err))
	}
	out := make(map[string]time.Time, len(rows))
	for _, r := range rows {
		out[r.Name] = r.DueUpTo
	}
	return out, nil
}

// TakePeriodic says that the job does all the work due up to now.
func (s *Store) TakePeriodic(ctx context.Context, tx pgx.Tx, name string, jobID int64, now time.Time) error {
	err := s.q.TakePeriodic(ctx, tx, pgq.TakePeriodicParams{Name: name, JobID: &jobID, Now: now})
	if err != nil {
		return fmt.Errorf("take %s: %w", name, db.Classify(err))
	}
	return nil
}

// BeginPeriodic says that the job works on it now, and gives what earlier pieces of the same job have reported.
func (s *Store) BeginPeriodic(ctx context.Context, q db.Querier, name string, jobID int64, now time.Time) (json.RawMessage, error) {
	if err := s.q.BeginPeriodic(ctx, q, pgq.BeginPeriodicParams{Name: name, JobID: &jobID, Now: now}); err != nil {
		return nil, fmt.Errorf("begin %s: %w", name, db.Classify(err))
	}
	report, err := s.q.PeriodicReport(ctx, q, name)
	if err != nil {
		return nil, fmt.Errorf("begin %s: %w", name, db.Classify(err))
	}
	return report, nil
}

// SettlePeriodic keeps how the job's run went so far; finished is zero while it goes on. Nothing happens when another job
// has taken over.
func (s *Store) SettlePeriodic(ctx context.Context, q db.Querier, name string, jobID int64, report json.RawMessage, failure string, finished time.Time) error {
	err := s.q.SettlePeriodic(ctx, q, pgq.SettlePeriodicParams{
		Name: name, JobID: &jobID, Report: report, Error: orNil(failure), FinishedAt: timeOrNil(finished),
	})
	if err != nil {
		return fmt.Errorf("settle %s: %w", name, db.Classify(err))
	}
	return nil
}

// Periodic is how the last run of periodic work went.
type Periodic struct {
	Name        string          `json:"name"`
	DueUpTo     time.Time       `json:"dueUpTo"` // due times up to here have been taken
	JobID       *int64          `json:"jobId"`
	StartedAt   *time.Time      `json:"startedAt"`
	FinishedAt  *time.Time      `json:"finishedAt"`  // null while it runs
	SucceededAt *time.Time      `json:"succeededAt"` // when a run last came to its end without an error
	Error       *string         `json:"error"`
	Report      json.RawMessage `json:"report"`
}

// Periodics lists all periodic work that was ever due or asked for.
func (s *Store) Periodics(ctx context.Context, q db.Querier) ([]Periodic, error) {
	rows, err := s.q.Periodics(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list periodic work: %w", db.Classify(err))
	}
	out := make([]Periodic, len(rows))
	for i, r := range rows {
		out[i] = Periodic(r)
	}
	return out, nil
}
