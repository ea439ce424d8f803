package mailbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"time"

	"msgexchange/jobs/fault"
)

// searchBack is how many rows of COUTMSGS, from the newest, SendRequest looks through for its own: the crash it is for lies seconds back.
const searchBack = 1000

// SendRequest makes sure that a request stands in COUTMSGS exactly once, whoever tries it how often, and gives its id and the
// moment it was put there, by the server's clock, to the second (contract §8.18). text must be the same each time and tell
// the request from every other. Who tries is alone with it in the server, so that a worker which was stopped, overtaken and
// woken again finds what its successor wrote; the lock goes with the connection.
func (m *Mailbox) SendRequest(ctx context.Context, text, routingID string) (id int64, at time.Time, err error) {
	t, err := m.tables(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return 0, time.Time{}, classify("send request", err)
	}
	defer conn.Close() //nolint:errcheck // it goes back into the pool, or is broken and gone
	unlock, err := lock(ctx, conn, text)
	if err != nil {
		return 0, time.Time{}, err
	}
	defer unlock()
	id, at, found, err := m.findRequest(ctx, conn, t, text)
	if err != nil || found {
		return id, at, err
	}
	return m.insertRequest(ctx, conn, t, text, routingID)
}

// How long the server lets us wait for whoever tries the same request, and how long giving the lock back may take.
const (
	lockWaitSeconds = 2
	unlockTimeout   = 2 * time.Second
)

// lock takes the server's lock for one text, for this connection. One that cannot give it back is thrown away, and the lock
// goes with it.
func lock(ctx context.Context, conn *sql.Conn, text string) (unlock func(), err error) {
	const op, locked = "lock request", 1
	sum := sha256.Sum256([]byte(text))
	name := "msgx." + hex.EncodeToString(sum[:16]) // of at most 64 characters
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, lockWaitSeconds).Scan(&got); err != nil {
		return nil, classify(op, err)
	}
	if got.Int64 != locked {
		return nil, fault.New(fault.Infra, "mailbox: "+op, "somebody else has been sending it for %d s", lockWaitSeconds)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		var freed sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", name).Scan(&freed); err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}, nil
}

func (m *Mailbox) insertRequest(ctx context.Context, conn *sql.Conn, t tables, text, routingID string) (id int64, at time.Time, err error) {
	if at, err = m.serverTime(ctx, conn); err != nil {
		return 0, time.Time{}, err
	}
	res, err := conn.ExecContext(ctx, "INSERT INTO "+t.out+" (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID, COUTMSGS_TRUEFALS_GROUP,"+
		" COUTMSGS_FINAL_GROUP_IND, COUTMSGS_ACK_REQD, COUTMSGS_ACK_RESEND_TIMES, COUTMSGS_ENCRYPT, COUTMSGS_ERROR)"+
		" VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0)", text, second(at), routingID)
	if err != nil {
		return 0, time.Time{}, classify("insert request", err)
	}
	id, err = res.LastInsertId()
	return id, at, classify("insert request", err)
}

// rower asks for one row: the pool or one connection.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Clock is the server's clock, whatever its zone, to the second.
func (m *Mailbox) Clock(ctx context.Context) (time.Time, error) { return m.serverTime(ctx, m.db) }

func (m *Mailbox) serverTime(ctx context.Context, q rower) (time.Time, error) {
	var text string
	if err := q.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP() AS CHAR)").Scan(&text); err != nil {
		return time.Time{}, classify("read the server's clock", err)
	}
	at, err := time.ParseInLocation(dateForm, text, time.UTC)
	if err != nil {
		return time.Time{}, classify("read the server's clock", err)
	}
	return at.Truncate(time.Second).In(m.zone), nil
}

// findRequest looks for a request with exactly this text among the newest rows: one that was inserted before a crash kept us
// from knowing it. at is now when the row's own date is none.
func (m *Mailbox) findRequest(ctx context.Context, q rower, t tables, text string) (id int64, at time.Time, found bool, err error) {
	const op = "find request"
	var last int64
	err = q.QueryRowContext(ctx, "SELECT COUTMSGS_ID FROM "+t.out+" ORDER BY COUTMSGS_ID DESC LIMIT 1").Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, false, nil // there are none at all
	}
	if err != nil {
		return 0, time.Time{}, false, classify(op, err)
	}
	var date sql.NullString
	err = q.QueryRowContext(ctx, "SELECT COUTMSGS_ID, CAST(COUTMSGS_DATE_INSERTED AS CHAR) FROM "+t.out+
		" WHERE COUTMSGS_ID > ? AND COUTMSGS_CLOB_MSG = ? ORDER BY COUTMSGS_ID DESC LIMIT 1", last-searchBack, text).Scan(&id, &date)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, false, nil
	}
	if err != nil {
		return 0, time.Time{}, false, classify(op, err)
	}
	if at, _ = m.moment(date); at.IsZero() {
		at, err = m.serverTime(ctx, q)
	}
	return id, at, true, err
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
