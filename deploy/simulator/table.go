package simulator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Table is the inbound table of a MySQL mailbox, as its sender fills it (dictionary 1). Safe for concurrent use.
type Table struct {
	db     *sql.DB
	zone   *time.Location
	insert string
}

// NewTable prepares for a table of that name, whose times are in zone.
func NewTable(db *sql.DB, name string, zone *time.Location) *Table {
	return &Table{db: db, zone: zone, insert: "INSERT INTO " + quote(name) + " (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES "}
}

// Insert puts the rows in with one statement.
func (t *Table) Insert(ctx context.Context, rows []Row) error {
	_, err := t.db.ExecContext(ctx, t.statement(len(rows)), t.values(rows)...)
	return err
}

// Begin puts one row in and leaves the transaction open.
func (t *Table) Begin(ctx context.Context, row Row) (Pending, error) {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows := []Row{row}
	if _, err := tx.ExecContext(ctx, t.statement(len(rows)), t.values(rows)...); err != nil {
		return nil, errors.Join(fmt.Errorf("insert: %w", err), tx.Rollback())
	}
	return tx, nil
}

func (t *Table) statement(rows int) string {
	return t.insert + strings.TrimSuffix(strings.Repeat("(?,?,'VALID'),", rows), ",")
}

// values writes times as text, so that the zone of the connection does not matter.
func (t *Table) values(rows []Row) []any {
	out := make([]any, 0, 2*len(rows))
	for _, r := range rows {
		out = append(out, r.Text, r.ReceivedAt.In(t.zone).Format(time.DateTime))
	}
	return out
}

// Requests is the outbound table of a MySQL mailbox, as the transport to the airport database works it off (dictionary 1).
type Requests struct {
	db    *sql.DB
	zone  *time.Location
	table string
}

// NewRequests prepares for a table of that name, whose times are in zone.
func NewRequests(db *sql.DB, name string, zone *time.Location) *Requests {
	return &Requests{db: db, zone: zone, table: quote(name)}
}

// Take is Outbox's. It gives nothing while a drill keeps requests from being taken.
func (q *Requests) Take(ctx context.Context, now time.Time) (texts []string, err error) {
	release, got, err := lockTransport(ctx, q.db, 0)
	if err != nil || !got {
		return nil, err
	}
	defer func() { err = errors.Join(err, release(ctx)) }()
	return q.take(ctx, now)
}

func (q *Requests) take(ctx context.Context, now time.Time) (texts []string, err error) {
	rows, err := q.db.QueryContext(ctx, "SELECT COUTMSGS_ID, COUTMSGS_CLOB_MSG FROM "+q.table+" WHERE COUTMSGS_DATE_SENT IS NULL ORDER BY COUTMSGS_ID")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var ids []int64
	for rows.Next() {
		var (
			id   int64
			text string
		)
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		ids, texts = append(ids, id), append(texts, text)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		_, err := q.db.ExecContext(ctx, "UPDATE "+q.table+" SET COUTMSGS_DATE_SENT = ? WHERE COUTMSGS_ID = ?", now.In(q.zone).Format(time.DateTime), id)
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
