package mailbox

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// searchBack is how many rows of COUTMSGS, from the newest, FindRequest looks at: the crash it is for lies seconds back.
const searchBack = 1000

// InsertRequest appends a request to COUTMSGS and gives its id and the moment it was put there, by the server's clock, to
// the second (contract §8.18).
func (m *Mailbox) InsertRequest(ctx context.Context, text, routingID string) (id int64, at time.Time, err error) {
	const op = "insert request"
	t, err := m.tables(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	if at, err = m.serverTime(ctx); err != nil {
		return 0, time.Time{}, err
	}
	res, err := m.db.ExecContext(ctx, "INSERT INTO "+t.out+" (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID, COUTMSGS_TRUEFALS_GROUP,"+
		" COUTMSGS_FINAL_GROUP_IND, COUTMSGS_ACK_REQD, COUTMSGS_ACK_RESEND_TIMES, COUTMSGS_ENCRYPT, COUTMSGS_ERROR)"+
		" VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0)", text, second(at), routingID)
	if err != nil {
		return 0, time.Time{}, classify(op, err)
	}
	id, err = res.LastInsertId()
	return id, at, classify(op, err)
}

// serverTime is the server's clock, whatever its zone.
func (m *Mailbox) serverTime(ctx context.Context) (time.Time, error) {
	var text string
	if err := m.db.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP() AS CHAR)").Scan(&text); err != nil {
		return time.Time{}, classify("read the server's clock", err)
	}
	at, err := time.ParseInLocation(dateForm, text, time.UTC)
	if err != nil {
		return time.Time{}, classify("read the server's clock", err)
	}
	return at.Truncate(time.Second).In(m.zone), nil
}

// FindRequest looks for a request with exactly this text among the newest rows: one that was inserted before a crash kept
// us from knowing it. found is false when there is none; at is zero when its date is none.
func (m *Mailbox) FindRequest(ctx context.Context, text string) (id int64, at time.Time, found bool, err error) {
	const op = "find request"
	t, err := m.tables(ctx)
	if err != nil {
		return 0, time.Time{}, false, err
	}
	var last int64
	if err := m.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(COUTMSGS_ID), 0) FROM "+t.out).Scan(&last); err != nil {
		return 0, time.Time{}, false, classify(op, err)
	}
	var date sql.NullString
	err = m.db.QueryRowContext(ctx, "SELECT COUTMSGS_ID, CAST(COUTMSGS_DATE_INSERTED AS CHAR) FROM "+t.out+
		" WHERE COUTMSGS_ID > ? AND COUTMSGS_CLOB_MSG = ? ORDER BY COUTMSGS_ID DESC LIMIT 1", last-searchBack, text).Scan(&id, &date)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, false, nil
	}
	if err != nil {
		return 0, time.Time{}, false, classify(op, err)
	}
	at, _ = m.moment(date)
	return id, at, true, nil
}

// Taken gives, of the requests named, those the transport has taken, and when (COUTMSGS_DATE_SENT).
func (m *Mailbox) Taken(ctx context.Context, ids []int64) (map[int64]time.Time, error) {
	const op = "look at requests"
	if len(ids) == 0 {
		return nil, nil
	}
	t, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := m.db.QueryContext(ctx, "SELECT COUTMSGS_ID, CAST(COUTMSGS_DATE_SENT AS CHAR) FROM "+t.out+
		" WHERE COUTMSGS_DATE_SENT IS NOT NULL AND COUTMSGS_ID IN ("+places(len(ids))+")", args...)
	if err != nil {
		return nil, classify(op, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := map[int64]time.Time{}
	for rows.Next() {
		var (
			id   int64
			date sql.NullString
		)
		if err := rows.Scan(&id, &date); err != nil {
			return nil, classify(op, err)
		}
		out[id], _ = m.moment(date) // taken, also when nobody can say when
	}
	return out, classify(op, rows.Err())
}
