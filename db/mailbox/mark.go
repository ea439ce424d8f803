package mailbox

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"

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

// Mark writes the processed marks at moment at and answers each, in the order of marks. Rows that are marked stay as they
// are, and rows that somebody has locked are not waited for. Next to an error the answers may be fewer: those for the first
// marks, and nothing is known of the others.
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
			return answers, err
		default:
			answers = append(answers, backfill.Answer{ID: marks[i].ID, Result: backfill.Transient, Err: err})
		}
	}
	return answers, nil
}

// errLocked is why a row could not be marked now.
var errLocked = errors.New("mailbox: mark: somebody has locked the row")

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
	rows, err := m.lockRows(ctx, tx, t.in, marks)
	if err != nil {
		return nil, classify(op, err)
	}
	var due []backfill.Mark
	answers = make([]backfill.Answer, len(marks))
	for i, k := range marks {
		answers[i] = rows[k.ID].answer(k)
		if answers[i].Result == backfill.Written {
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

// rowState is what is known of a row to be marked; the zero one is not there.
type rowState struct {
	there, locked, marked bool
	receivedAt            time.Time // zero: unknown
}

// answer says what can be done about k's row; Written is still to be done.
func (r rowState) answer(k backfill.Mark) backfill.Answer {
	a := backfill.Answer{ID: k.ID, Result: backfill.Written}
	known := !k.ReceivedAt.IsZero() && !r.receivedAt.IsZero()
	switch {
	case !r.there, known && !k.ReceivedAt.Truncate(time.Second).Equal(r.receivedAt.Truncate(time.Second)):
		a.Result = backfill.Missing
	case r.locked:
		a.Result, a.Err = backfill.Transient, fault.Wrap(fault.Infra, "mark", errLocked)
	case r.marked:
		a.Result = backfill.Already
	}
	return a
}

// lockRows locks the rows that are there and not locked by others, and says what it found. Servers too old for SKIP LOCKED
// wait, for as long as innodb_lock_wait_timeout allows, and refuse all together.
func (m *Mailbox) lockRows(ctx context.Context, tx *sql.Tx, table string, marks []backfill.Mark) (map[int64]rowState, error) {
	ids := make([]int64, len(marks))
	for i, k := range marks {
		ids[i] = k.ID
	}
	if m.noSkip.Load() {
		return m.rowStates(ctx, tx, table, ids, "FOR UPDATE")
	}
	found, err := m.rowStates(ctx, tx, table, ids, "FOR UPDATE SKIP LOCKED")
	var me *mysql.MySQLError
	if errors.As(err, &me) && me.Number == errSyntax {
		m.noSkip.Store(true)
		return m.rowStates(ctx, tx, table, ids, "FOR UPDATE")
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool { return found[id].there })
	if err != nil || len(ids) == 0 {
		return found, err
	}
	others, err := m.rowStates(ctx, tx, table, ids, "")
	for id, r := range others {
		r.locked = true
		found[id] = r
	}
	return found, err
}

func (m *Mailbox) rowStates(ctx context.Context, tx *sql.Tx, table string, ids []int64, lock string) (map[int64]rowState, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := tx.QueryContext(ctx, "SELECT CMINMSGS_ID, CMINMSGS_DATE_PROCESSED IS NOT NULL, "+dateText+" FROM "+table+
		" WHERE CMINMSGS_ID IN ("+places(len(ids))+") "+lock, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := make(map[int64]rowState, len(ids))
	for rows.Next() {
		var (
			id       int64
			r        = rowState{there: true}
			received sql.NullString
		)
		if err := rows.Scan(&id, &r.marked, &received); err != nil {
			return nil, err
		}
		r.receivedAt, _ = m.moment(received)
		out[id] = r
	}
	return out, rows.Err()
}

// markStatement writes marks at once, each row its own values; a SUBSYSTEM column that has a value keeps it. What is the same for
// all, as sender and status nearly always are, is said once: the server would walk a CASE of fifty for each row.
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
	var b strings.Builder
	args := make([]any, 0, 1+(2*len(columns)+1)*len(marks))
	b.WriteString("UPDATE " + table + " SET CMINMSGS_DATE_PROCESSED = ?")
	args = append(args, second(at))
	for i, c := range columns {
		b.WriteString(", " + c.name + " = ")
		if i > 0 {
			b.WriteString("COALESCE(" + c.name + ", ")
		}
		first := c.value(marks[0])
		if slices.ContainsFunc(marks, func(k backfill.Mark) bool { return c.value(k) != first }) {
			b.WriteString("CASE CMINMSGS_ID")
			for _, k := range marks {
				args = append(args, k.ID, c.value(k))
			}
			b.WriteString(strings.Repeat(" WHEN ? THEN ?", len(marks)) + " END")
		} else {
			b.WriteString("?")
			args = append(args, first)
		}
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
