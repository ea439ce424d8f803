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
	quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
	return &Table{db: db, zone: zone, insert: "INSERT INTO " + quoted + " (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES "}
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
