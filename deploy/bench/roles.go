package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"msgexchange/deploy/systemtest/rig"
)

// roles measures what a message of a backlog costs each role, with that role alone at work, one after the other. Together they
// are a backlog's processor time without what the roles cost by running side by side.
func roles(ctx context.Context, b *bench) error {
	err := b.with(ctx, func(*rig.Pod) error {
		if _, err := b.put(ctx, schedules(b.next(), backlogFlights)); err != nil {
			return err
		}
		if err := b.drained(ctx); err != nil {
			return err
		}
		return b.settleIn(ctx)
	}, forBacklogs()...)
	if err != nil {
		return err
	}
	if _, err := b.put(ctx, b.backlogTexts(b.backlog)...); err != nil {
		return err
	}
	for _, r := range []struct{ name, done string }{
		{"poll", "SELECT (SELECT committed_up_to FROM inbox_cursor) = $1"},
		{"head", "SELECT $1 > 0 AND NOT EXISTS (SELECT 1 FROM proc_state WHERE state IN ('PENDING', 'FAILED'))"},
		{"deliver", "SELECT $1 > 0 AND NOT EXISTS (SELECT 1 FROM event_span WHERE state = 'PENDING')"},
		{"backfill", "SELECT $1 > 0 AND NOT EXISTS (SELECT 1 FROM proc_state WHERE backfill_next_at IS NOT NULL)"},
	} {
		if err := b.role(ctx, r.name, r.done, forBacklogs()); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// role lets one role work until done, a question with the mailbox's highest id as $1, is true.
func (b *bench) role(ctx context.Context, name, done string, env []string) error {
	if err := b.forgetStatements(ctx); err != nil {
		return err
	}
	last, err := b.lastID(ctx)
	if err != nil {
		return err
	}
	before, err := spent()
	if err != nil {
		return err
	}
	err = b.withRoles(ctx, "http,"+name, func(*rig.Pod) error {
		return b.until(ctx, 5*time.Minute, func() (ok bool, err error) {
			err = b.world.Pool.QueryRow(ctx, done, last).Scan(&ok)
			return ok, err
		})
	}, env...)
	if err != nil {
		return err
	}
	after, err := spent()
	if err != nil {
		return err
	}
	b.table.limit("processor time of a message, "+name+" alone", "%s", after.minus(before).per(b.backlog))
	if !b.statements {
		return nil
	}
	fmt.Println(name)
	return b.printStatements(ctx, os.Stdout)
}
