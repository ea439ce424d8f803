package mailbox

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"msgexchange/jobs/backfill"
	"msgexchange/jobs/fault"
)

// What the SUBSYSTEM columns hold (dictionary 1). What does not fit is left out, never cut.
const (
	maxCodeLetters = 4
	maxMediumInt   = 1<<23 - 1
)

// marksPerStatement bounds one UPDATE: the server walks its CASE from the front for each row.
const marksPerStatement = 50

// Mark writes the processed marks at moment at and gives one answer for each, in the order of marks. Rows that are marked
// stay as they are. An error means that the mailbox could not be asked at all; then nothing is known of any row.
func (m *Mailbox) Mark(ctx context.Context, marks []backfill.Mark, at time.Time) ([]backfill.Answer, error) {
	if len(marks) == 0 {
		return nil, nil
	}
	answers, err := m.markAll(ctx, marks, at)
	if err == nil {
		return answers, nil
	}
	if fault.Of(err) == fault.Outage || ctx.Err() != nil {
		return nil, err
	}
	// The mailbox refused one of them: find out which, one by one.
	answers = make([]backfill.Answer, 0, len(marks))
	for i := range marks {
		one, err := m.markAll(ctx, marks[i:i+1], at)
		switch {
		case err == nil:
			answers = append(answers, one...)
		case fault.Of(err) == fault.Outage || ctx.Err() != nil:
			return nil, err
		default:
			answers = append(answers, backfill.Answer{ID: marks[i].ID, Result: backfill.Transient, Err: err})
		}
	}
	return answers, nil
}

// markAll reads the rows under lock, so that what is read still holds when the unmarked ones are written. READ COMMITTED
// locks no gaps: it never stands in a sender's way.
func (m *Mailbox) markAll(ctx context.Context, marks []backfill.Mark, at time.Time) (answers []backfill.Answer, err error) {
	const op = "mark"
	t, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := m.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, classify(op, err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback()
		}
	}()
	marked, err := readMarks(ctx, tx, t.in, marks)
	if err != nil {
		return nil, classify(op, err)
	}
	var due []backfill.Mark
	answers = make([]backfill.Answer, len(marks))
	for i, k := range marks {
		answers[i].ID = k.ID
		switch isMarked, there := marked[k.ID]; {
		case !there:
			answers[i].Result = backfill.Missing
		case isMarked:
			answers[i].Result = backfill.Already
		default:
			answers[i].Result = backfill.Written
			due = append(due, k)
		}
	}
	for part := range slices.Chunk(due, marksPerStatement) {
		stmt, args := markStatement(t.in, part, at)
		if _, err := tx.ExecContext(ctx, stmt, args...); err != nil {
			return nil, classify(op, err)
		}
	}
	return answers, classify(op, tx.Commit())
}

// readMarks says of each row that exists whether it is marked.
func readMarks(ctx context.Context, tx *sql.Tx, table string, marks []backfill.Mark) (map[int64]bool, error) {
	args := make([]any, len(marks))
	for i, k := range marks {
		args[i] = k.ID
	}
	rows, err := tx.QueryContext(ctx, "SELECT CMINMSGS_ID, CMINMSGS_DATE_PROCESSED IS NOT NULL FROM "+table+
		" WHERE CMINMSGS_ID IN ("+places(len(marks))+") FOR UPDATE", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := make(map[int64]bool, len(marks))
	for rows.Next() {
		var (
			id     int64
			marked bool
		)
		if err := rows.Scan(&id, &marked); err != nil {
			return nil, err
		}
		out[id] = marked
	}
	return out, rows.Err()
}

// markStatement writes marks at once, each row its own values; a SUBSYSTEM column that has a value keeps it.
func markStatement(table string, marks []backfill.Mark, at time.Time) (string, []any) {
	columns := []struct {
		name  string
		value func(backfill.Mark) any
	}{
		{"CMINMSGS_STATUS", func(k backfill.Mark) any { return k.Status }},
		{"CMINMSGS_SUBSYSTEM_NAME", func(k backfill.Mark) any { return code(k.Meta.SNDR) }},
		{"CMINMSGS_SUBSYSTEM_SEQUENCE", func(k backfill.Mark) any { return number(k) }},
		{"CMINMSGS_SUBSYSTEM_DATE_SENT", func(k backfill.Mark) any { return second(k.Meta.DTTM) }},
		{"CMINMSGS_SUBSYSTEM_SUBTYPE", func(k backfill.Mark) any { return code(k.Meta.STYP) }},
		{"CMINMSGS_SUBSYSTEM_TYPE", func(k backfill.Mark) any { return code(k.Meta.TYPE) }},
	}
	var (
		b    strings.Builder
		args []any
	)
	b.WriteString("UPDATE " + table + " SET CMINMSGS_DATE_PROCESSED = ?")
	args = append(args, second(at))
	for i, c := range columns {
		b.WriteString(", " + c.name + " = ")
		if i > 0 {
			b.WriteString("COALESCE(" + c.name + ", ")
		}
		b.WriteString("CASE CMINMSGS_ID")
		for _, k := range marks {
			b.WriteString(" WHEN ? THEN ?")
			args = append(args, k.ID, c.value(k))
		}
		b.WriteString(" END")
		if i > 0 {
			b.WriteString(")")
		}
	}
	b.WriteString(" WHERE CMINMSGS_DATE_PROCESSED IS NULL AND CMINMSGS_ID IN (" + places(len(marks)) + ")")
	for _, k := range marks {
		args = append(args, k.ID)
	}
	return b.String(), args
}

func places(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

func code(s string) any {
	if s == "" || utf8.RuneCountInString(s) > maxCodeLetters {
		return nil
	}
	return s
}

func number(k backfill.Mark) any {
	if k.Meta.TYPE == "" || k.Meta.SEQN > maxMediumInt {
		return nil
	}
	return k.Meta.SEQN
}
