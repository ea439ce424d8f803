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

// AuditRow is one thing that was done to the system by hand, or that was asked for and refused.
type AuditRow struct {
	ID     int64           `json:"id"` // given by the database
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"` // who; for processes what
	Peer   string          `json:"peer"`  // from where
	Action string          `json:"action"`
	Reason string          `json:"reason"`
	Scope  json.RawMessage `json:"scope"` // what it was about
	DryRun bool            `json:"dryRun"`
	Result json.RawMessage `json:"result"`
}

// Audit puts a row into the audit: in the transaction of what it tells about.
func (s *Store) Audit(ctx context.Context, q db.Querier, r AuditRow) error {
	err := s.q.InsertAudit(ctx, q, pgq.InsertAuditParams{
		At: r.At, Actor: r.Actor, Peer: r.Peer, Action: r.Action, Reason: r.Reason, Scope: r.Scope, DryRun: r.DryRun, Result: r.Result,
	})
	if err != nil {
		return fmt.Errorf("audit %s: %w", r.Action, db.Classify(err))
	}
	return nil
}

// Place is where r stands.
func (r AuditRow) Place() Place { return Place{At: r.At, ID: r.ID} }

// AuditFilter chooses rows of the audit. Zero values choose everything.
type AuditFilter struct {
	Page
	Actor, Action string
}

// AuditRows lists the audit.
func (s *Store) AuditRows(ctx context.Context, tx pgx.Tx, f AuditFilter) ([]AuditRow, error) {
	if err := freshPlan(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := s.q.OpsAudit(ctx, tx, pgq.OpsAuditParams{
		BeforeAt: timeOrNil(f.After.At), BeforeID: f.After.ID, Actor: orNil(f.Actor), Action: orNil(f.Action),
		FromTime: timeOrNil(f.From), ToTime: timeOrNil(f.To), MaxRows: int32(f.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list the audit: %w", db.Classify(err))
	}
	out := make([]AuditRow, len(rows))
	for i, r := range rows {
		out[i] = AuditRow(r)
	}
	return out, nil
}
