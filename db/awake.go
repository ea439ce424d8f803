package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// awakePeriod is well below the session's idle_in_transaction_session_timeout.
const awakePeriod = time.Second

// Awake runs think, which must not use tx, and meanwhile shows the server that the transaction is alive: a process that
// was stopped or cut off loses it after five seconds (O4), one that computes must not. Without this a message that takes
// longer to decide would be rolled back and begun again for ever, and as a server's doing it would cost no attempt.
// The error is the connection's; think has run to its end all the same.
func Awake(ctx context.Context, tx pgx.Tx, think func()) error {
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(awakePeriod)
		defer tick.Stop()
		for {
			select {
			case <-done:
				result <- nil
				return
			case <-tick.C:
				if _, err := tx.Exec(ctx, "SELECT 1"); err != nil {
					result <- Classify(err)
					return
				}
			}
		}
	}()
	var err error
	func() {
		defer func() { // also when think panics: nobody may use tx beside its owner
			close(done)
			err = <-result
		}()
		think()
	}()
	return err
}
