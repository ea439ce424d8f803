package mailbox

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
	"time"

	"msgexchange/jobs/inbox"
)

// dateText reads a DATETIME as text, so that no driver bends a date that is none.
const dateText = "CAST(CMINMSGS_DATE_RECEIVED AS CHAR)"

// After gives up to limit rows with ids above after, ascending, without their texts. It never looks at the processed mark.
func (m *Mailbox) After(ctx context.Context, after int64, limit int) ([]inbox.Row, error) {
	stmt, err := m.in(ctx, "SELECT CMINMSGS_ID, "+dateText+" FROM %s WHERE CMINMSGS_ID > ? ORDER BY CMINMSGS_ID LIMIT ?")
	if err != nil {
		return nil, err
	}
	return m.rows(ctx, "read ids", stmt, after, limit)
}

// In gives up to limit rows whose ids lie in the ranges, ascending, without their texts.
func (m *Mailbox) In(ctx context.Context, ranges []inbox.Range, limit int) ([]inbox.Row, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	where := strings.Repeat("CMINMSGS_ID BETWEEN ? AND ? OR ", len(ranges)-1) + "CMINMSGS_ID BETWEEN ? AND ?"
	stmt, err := m.in(ctx, "SELECT CMINMSGS_ID, "+dateText+" FROM %s WHERE "+where+" ORDER BY CMINMSGS_ID LIMIT ?")
	if err != nil {
		return nil, err
	}
	args := make([]any, 0, 2*len(ranges)+1)
	for _, r := range ranges {
		args = append(args, r.First, r.Last)
	}
	return m.rows(ctx, "read ids", stmt, append(args, limit)...)
}

func (m *Mailbox) rows(ctx context.Context, op, stmt string, args ...any) ([]inbox.Row, error) {
	rows, err := m.db.QueryContext(ctx, stmt, args...)
	if err != nil {
		return nil, classify(op, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var out []inbox.Row
	for rows.Next() {
		var (
			r    inbox.Row
			date sql.NullString
		)
		if err := rows.Scan(&r.ID, &date); err != nil {
			return nil, classify(op, err)
		}
		r.ReceivedAt, _ = m.moment(date)
		out = append(out, r)
	}
	return out, classify(op, rows.Err())
}

// Texts gives the rows with ids in r, ascending, each with its text unless that is oversize; those are not loaded. Rows
// are handed on one by one as they arrive, so that not all texts need fit into memory. An error ends it.
func (m *Mailbox) Texts(ctx context.Context, r inbox.Range) iter.Seq2[inbox.Message, error] {
	return func(yield func(inbox.Message, error) bool) {
		if err := m.texts(ctx, r, func(msg inbox.Message) bool { return yield(msg, nil) }); err != nil {
			yield(inbox.Message{}, err)
		}
	}
}

func (m *Mailbox) texts(ctx context.Context, r inbox.Range, each func(inbox.Message) bool) error {
	const op = "read texts"
	stmt, err := m.in(ctx, "SELECT CMINMSGS_ID, "+dateText+", OCTET_LENGTH(CMINMSGS_CLOB_MSG), IF(OCTET_LENGTH(CMINMSGS_CLOB_MSG) > ?, NULL, CMINMSGS_CLOB_MSG)"+
		" FROM %s WHERE CMINMSGS_ID BETWEEN ? AND ? ORDER BY CMINMSGS_ID")
	if err != nil {
		return err
	}
	rows, err := m.db.QueryContext(ctx, stmt, m.maxText, r.First, r.Last)
	if err != nil {
		return classify(op, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		msg, err := m.message(rows)
		if err != nil {
			return classify(op, err)
		}
		if !each(msg) {
			return nil
		}
	}
	return classify(op, rows.Err())
}

func (m *Mailbox) message(rows *sql.Rows) (inbox.Message, error) {
	var (
		msg        inbox.Message
		date, text sql.NullString
		size       sql.NullInt64
	)
	if err := rows.Scan(&msg.ID, &date, &size, &text); err != nil {
		return msg, err
	}
	var ok bool
	msg.ReceivedAt, ok = m.moment(date)
	msg.BadDate = !ok
	msg.Text, msg.Size = text.String, int(size.Int64)
	msg.Oversize = !text.Valid && msg.Size > m.maxText
	return msg, nil
}

// Text gives the text of one row; found is false when there is none or it is oversize.
func (m *Mailbox) Text(ctx context.Context, id int64) (text []byte, found bool, err error) {
	err = m.texts(ctx, inbox.Range{First: id, Last: id}, func(msg inbox.Message) bool {
		text, found = []byte(msg.Text), !msg.Oversize
		return false
	})
	return text, found && err == nil, err
}

// Facts gives the smallest and largest id there is, and the server's id step.
func (m *Mailbox) Facts(ctx context.Context) (inbox.Extent, int64, error) {
	stmt, err := m.in(ctx, "SELECT COALESCE(MIN(CMINMSGS_ID), 0), COALESCE(MAX(CMINMSGS_ID), 0), @@auto_increment_increment FROM %s")
	if err != nil {
		return inbox.Extent{}, 0, err
	}
	var (
		e    inbox.Extent
		step int64
	)
	err = m.db.QueryRowContext(ctx, stmt).Scan(&e.Min, &e.Max, &step)
	return e, max(step, 1), classify("read the extent", err)
}

// ErrNoProcessRight says that the server does not show us its transactions: hole-probe cannot work.
var ErrNoProcessRight = errors.New("the mailbox user lacks the PROCESS right, which hole-probe needs")

// Unmarked gives those of the rows that are there and have no processed mark. It takes no lock.
func (m *Mailbox) Unmarked(ctx context.Context, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	table, err := m.in(ctx, "%s")
	if err != nil {
		return nil, err
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := m.rows(ctx, "read marks", "SELECT CMINMSGS_ID, "+dateText+" FROM "+table+
		" WHERE CMINMSGS_DATE_PROCESSED IS NULL AND CMINMSGS_ID IN ("+places(len(ids))+")", args...)
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out, err
}

// OldestTransaction says how long the oldest transaction open on the server has been open; zero when none is. Whole
// seconds, a little stale (InnoDB refreshes the list ten times a second). known is false when the server's clock leaves
// it in doubt.
func (m *Mailbox) OldestTransaction(ctx context.Context) (age time.Duration, known bool, err error) {
	// trx_started is in the server's own zone, whatever the session's is.
	const stmt = "SELECT COUNT(*), COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'))), 0)," +
		" COALESCE(MIN(TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'))), 0) FROM information_schema.INNODB_TRX"
	var open, oldest, youngest int64
	if err := m.db.QueryRowContext(ctx, stmt).Scan(&open, &oldest, &youngest); err != nil {
		return 0, false, classify("look at transactions", err)
	}
	if open == 0 {
		return 0, true, nil
	}
	return time.Duration(oldest) * time.Second, youngest >= 0, nil
}

// dateForm is MySQL's text of a DATETIME, without the parts of a second it may have.
const dateForm = "2006-01-02 15:04:05"

// moment reads a DATETIME's text in the mailbox's zone. NULL is a date that is unknown; a zero date, a day that does not
// exist, anything else that is no date is unknown too, and not ok.
func (m *Mailbox) moment(s sql.NullString) (at time.Time, ok bool) {
	if !s.Valid {
		return time.Time{}, true
	}
	at, err := time.ParseInLocation(dateForm, s.String, m.zone) // takes a fraction too
	if err != nil || at.Year() < 1 {
		return time.Time{}, false
	}
	return at, true
}

// Insert appends a row to CMINMSGS, as any sender does, and gives its id. ErrTooLarge when the mailbox does not take a
// text of that size.
func (m *Mailbox) Insert(ctx context.Context, text string, receivedAt time.Time) (int64, error) {
	const op = "insert"
	stmt, err := m.in(ctx, "INSERT INTO %s (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?, ?, 'VALID')")
	if err != nil {
		return 0, err
	}
	res, err := m.db.ExecContext(ctx, stmt, text, second(receivedAt))
	if err != nil {
		return 0, classify(op, err)
	}
	id, err := res.LastInsertId()
	if err == nil && id == 0 {
		err = errors.New("the server gave no id")
	}
	return id, classify(op, err)
}

// second cuts a moment to what a DATETIME holds: MySQL would round it, perhaps into the next day.
func second(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Truncate(time.Second)
}
