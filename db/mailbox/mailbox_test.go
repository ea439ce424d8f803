package mailbox_test

import (
	"os"
	"testing"

	"msgexchange/db/dbtest"
	"msgexchange/db/mailbox/mailboxtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

func TestMailbox(t *testing.T) {
	t.Parallel()
	mailboxtest.Run(t, func(t *testing.T) string { t.Helper(); return dbtest.Mailbox(t) })
}
