package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// row is a row of the mailbox.
type row struct {
	text      []byte
	processed sql.NullString
	status    sql.NullString
}

// messages compares mailbox and proc_state: each row once, ended as the replay ends it, and marked. On the way the replay is
// played.
func (a *auditor) messages(ctx context.Context) error {
	rows, err := a.mailbox(ctx)
	if err != nil {
		return err
	}
	done, err := a.processed(ctx)
	if err != nil {
		return err
	}
	a.must(len(done) == len(rows), "messages", "%d rows in the mailbox, %d in proc_state", len(rows), len(done))
	for _, p := range done {
		row, found := rows[p.id]
		if !found {
			a.differ("messages", "%d is in proc_state and not in the mailbox", p.id)
			continue
		}
		delete(rows, p.id)
		if want := a.replay.next(p, row.text); want != p.verdict {
			a.differ("messages", "%d ended %v, must %v", p.id, p.verdict, want)
		}
		a.must(row.processed.Valid && row.status.String == "PROCESSED", "marks", "row %d of the mailbox has no mark: %q", p.id, row.status.String)
		a.count(string(p.verdict.state), 1)
		if p.late {
			a.count("late", 1)
		}
	}
	a.replay.flush()
	for id := range rows {
		a.differ("messages", "%d is in the mailbox and not in proc_state", id)
	}
	return a.texts(ctx, done)
}

// mailbox reads all of it.
func (a *auditor) mailbox(ctx context.Context) (map[int64]row, error) {
	rows, err := a.world.Mailbox.DB().QueryContext(ctx, "SELECT CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_PROCESSED, CMINMSGS_STATUS FROM cminmsgs")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	all := map[int64]row{}
	for rows.Next() {
		var id int64
		var r row
		if err := rows.Scan(&id, &r.text, &r.processed, &r.status); err != nil {
			return nil, err
		}
		all[id] = r
	}
	return all, rows.Err()
}

// processed reads proc_state in the order in which its messages were dealt with.
func (a *auditor) processed(ctx context.Context) ([]processed, error) {
	rows, err := a.world.Pool.Query(ctx, `
		SELECT msg_id, finished_at, state, coalesce(error_class, ''), coalesce(skip_reason, ''), late,
		       backfill_at IS NOT NULL AND backfill_next_at IS NULL AND backfill_abandoned_at IS NULL, attempts, replay_count
		FROM proc_state WHERE finished_at IS NOT NULL ORDER BY finished_at, msg_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (p processed, err error) {
		var state, class string
		var marked bool
		var attempts, replays int
		if err := r.Scan(&p.id, &p.at, &state, &class, &p.verdict.skip, &p.late, &marked, &attempts, &replays); err != nil {
			return p, err
		}
		p.verdict.state, p.verdict.class = message.State(state), fault.Class(class)
		a.must(marked, "marks", "proc_state says that %d is not marked", p.id)
		a.must(attempts >= 1 && replays == 0, "messages", "%d has %d attempts and %d replays", p.id, attempts, replays)
		a.report.counts["most attempts"] = max(a.report.counts["most attempts"], attempts)
		return p, nil
	})
}

// texts compares the texts we keep with the mailbox's.
func (a *auditor) texts(ctx context.Context, done []processed) error {
	rows, err := a.mailbox(ctx)
	if err != nil {
		return err
	}
	at := make([]message.Position, len(done))
	for i, p := range done {
		at[i] = message.Position{ID: p.id}
	}
	kept, err := a.store.RawTexts(ctx, a.world.Pool, at)
	if err != nil {
		return fmt.Errorf("texts: %w", err)
	}
	for _, p := range at {
		a.must(bytes.Equal(kept[p].Text, rows[p.ID].text), "texts", "that of %d is not what the mailbox has", p.ID)
	}
	a.count("texts", len(kept))
	return nil
}
