package simulator

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// transportLock is the advisory lock of the mailbox under which simulated airports take requests: one looks at a time, and a
// drill keeps them all from looking. Real transports do not know it.
const transportLock = "msgexchange-simulated-transport"

// transportPatience is how long a drill waits for those that are looking.
const transportPatience = 10 * time.Second

// lockTransport takes the lock, waiting so long at most; got is false when somebody else kept it. release gives it back.
func lockTransport(ctx context.Context, db *sql.DB, patience time.Duration) (release func(context.Context) error, got bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, false, err
	}
	var answer sql.NullInt64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", transportLock, int(patience.Seconds())).Scan(&answer)
	if err != nil || answer.Int64 != 1 {
		return nil, false, errors.Join(err, conn.Close())
	}
	return func(ctx context.Context) error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), "SELECT RELEASE_LOCK(?)", transportLock)
		return errors.Join(err, conn.Close())
	}, true, nil
}
