package main

import (
	"context"
	"time"

	"msgexchange/deploy/simulator"
)

// stubborn is a mailbox that tries again while its server is away, until the run is over.
type stubborn struct {
	over    context.Context // the run's, not a call's: what is under way when it ends still finishes
	mailbox simulator.Mailbox
}

// Insert commits the rows, some of them perhaps twice.
func (s stubborn) Insert(ctx context.Context, rows []simulator.Row) error {
	return s.insist(func() error { return s.mailbox.Insert(ctx, rows) })
}

// Begin takes an id.
func (s stubborn) Begin(ctx context.Context, row simulator.Row) (simulator.Pending, error) {
	var p simulator.Pending
	err := s.insist(func() (err error) { p, err = s.mailbox.Begin(ctx, row); return err })
	if err != nil {
		return lost{}, nil //nolint:nilerr // the run is over: the row is not written
	}
	return forgiving{p}, nil
}

func (s stubborn) insist(try func() error) error {
	for {
		err := try()
		if err == nil || s.over.Err() != nil {
			return err
		}
		pause(s.over, 100*time.Millisecond)
	}
}

// forgiving is a transaction that may be lost with its server: its id is then a hole.
type forgiving struct{ simulator.Pending }

// Commit tries.
func (f forgiving) Commit() error {
	_ = f.Pending.Commit()
	return nil
}

// Rollback tries.
func (f forgiving) Rollback() error {
	_ = f.Pending.Rollback()
	return nil
}

// lost is a transaction that was never begun.
type lost struct{}

// Commit does nothing.
func (lost) Commit() error { return nil }

// Rollback does nothing.
func (lost) Rollback() error { return nil }
