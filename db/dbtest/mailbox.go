package dbtest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"msgexchange/db/dbserver"
)

// MailboxServer gives the DSN of an administrator of the MariaDB server, naming no schema.
func MailboxServer(tb testing.TB) string {
	tb.Helper()
	return shared.mariadb.need(tb)
}

// Mailbox makes a schema with empty CMINMSGS and COUTMSGS, as the dictionary's section 1 says, and gives the DSN of its
// administrator: user, password, address and schema, no parameters. The schema goes with the test.
func Mailbox(tb testing.TB) string {
	tb.Helper()
	server, schema := MailboxServer(tb), "mailbox_"+strings.ToLower(rand.Text())
	do := func(f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := f(ctx); err != nil {
			tb.Fatalf("%s: %v", EnvMariaDB, err)
		}
	}
	var dsn string
	do(func(ctx context.Context) (err error) {
		dsn, err = dbserver.MakeMailbox(ctx, server, schema)
		return err
	})
	tb.Cleanup(func() { do(func(ctx context.Context) error { return dbserver.DropMailbox(ctx, server, schema) }) })
	return dsn
}
