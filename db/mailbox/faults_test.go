package mailbox_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/mailbox"
	"msgexchange/db/mailbox/mailboxtest"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/inbox"
)

// TestK16_BadDates: dates that are none become unknown, and their batch passes.
func TestK16_BadDates(t *testing.T) {
	t.Parallel()
	d := mailboxtest.Open(t, dbtest.Mailbox(t))
	d.Exec("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
	d.Exec("SET STATEMENT sql_mode = 'ALLOW_INVALID_DATES' FOR INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) VALUES" +
		" (1, 'a', '0000-00-00 00:00:00'), (2, 'b', '2026-00-10 08:00:00'), (3, 'c', '2026-02-31 08:00:00'), (4, 'd', '2026-11-30 08:00:00')")
	all, err := d.All(t.Context(), inbox.Range{First: 1, Last: 9})
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, m := range all[:3] {
		require.True(t, m.BadDate, "row %d", m.ID)
		require.Zero(t, m.ReceivedAt, "row %d", m.ID)
	}
	require.False(t, all[3].BadDate)
	require.Equal(t, "2026-11-30T00:00:00Z", all[3].ReceivedAt.UTC().Format(time.RFC3339))
	rows, err := d.After(t.Context(), 0, 9)
	require.NoError(t, err)
	require.Len(t, rows, 4)
}

// TestUncommittedIsUnseen: what a writer has not committed is not there, and nobody waits for it.
func TestUncommittedIsUnseen(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	tx, err := mailboxtest.Owner(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG) VALUES ('<MSG/>')")
	require.NoError(t, err)
	later, err := d.Insert(t.Context(), "<MSG/>", time.Now())
	require.NoError(t, err)

	rows, err := d.After(t.Context(), 0, 9)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, later, rows[0].ID)
	require.NoError(t, tx.Commit())
	rows, err = d.After(t.Context(), 0, 9)
	require.NoError(t, err)
	require.Len(t, rows, 2)
}

// TestMarkRefusesOne: a row that somebody holds is transient; its neighbours are marked.
func TestMarkRefusesOne(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn+"?innodb_lock_wait_timeout=1")
	for id := int64(1); id <= 3; id++ {
		d.Put(id, "<MSG/>", "")
	}
	tx, err := mailboxtest.Owner(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // the test is over
	_, err = tx.ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_STATUS = 'HELD' WHERE CMINMSGS_ID = 2")
	require.NoError(t, err)

	answers, err := d.Mark(t.Context(), []backfill.Mark{{ID: 1, Status: "P"}, {ID: 2, Status: "P"}, {ID: 3, Status: "P"}}, time.Now())
	require.NoError(t, err)
	require.Equal(t, backfill.Written, answers[0].Result)
	require.Equal(t, backfill.Transient, answers[1].Result)
	require.Equal(t, fault.Infra, fault.Of(answers[1].Err))
	require.Equal(t, backfill.Written, answers[2].Result)
}

// TestMarkLeavesSendersAlone: marking asks for rows that are missing, too, and must not lock the gap they left.
func TestMarkLeavesSendersAlone(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn+"?innodb_lock_wait_timeout=1")
	sender, err := mailboxtest.Owner(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer sender.Rollback() //nolint:errcheck // the test is over
	_, err = sender.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG) VALUES (5, 'open')")
	require.NoError(t, err)
	answers, err := d.Mark(t.Context(), []backfill.Mark{{ID: 3, Status: "P"}, {ID: 9, Status: "P"}}, time.Now())
	require.NoError(t, err)
	require.Equal(t, backfill.Missing, answers[0].Result)
	_, err = sender.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG) VALUES (4, 'more')")
	require.NoError(t, err)
}

// TestTooLarge: the mailbox's own limit is told as such, and the pool lives on.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	d := mailboxtest.Open(t, dbtest.Mailbox(t))
	_, err := d.Insert(t.Context(), strings.Repeat("x", 17<<20), time.Now())
	require.ErrorIs(t, err, mailbox.ErrTooLarge)
	require.NotEqual(t, fault.Outage, fault.Of(err))
	_, err = d.Insert(t.Context(), "<MSG/>", time.Now())
	require.NoError(t, err)
}

func TestOutage(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	schema := dsn[strings.LastIndex(dsn, "/")+1:]
	for name, bad := range map[string]string{
		"nobody listens":   "u:p@tcp(127.0.0.1:1)/m",
		"no such schema":   strings.Replace(dsn, schema, "no_such", 1),
		"wrong password":   "nobody:secret@" + dsn[strings.Index(dsn, "@")+1:],
		"no table in ours": strings.Replace(dsn, schema, "mysql", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := mailbox.Open(mailbox.Config{DSN: bad, Zone: mailboxtest.Shanghai(t)})
			require.NoError(t, err, "a process starts while the mailbox is away")
			t.Cleanup(func() { _ = m.Close() })
			_, err = m.After(t.Context(), 0, 1)
			require.Equal(t, fault.Outage, fault.Of(err), "%v", err)
			_, err = m.Mark(t.Context(), []backfill.Mark{{ID: 1}}, time.Now())
			require.Equal(t, fault.Outage, fault.Of(err), "%v", err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	_, err := mailbox.Open(mailbox.Config{DSN: "u:secret@nowhere", Zone: time.UTC})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestShutdownIsNoFault(t *testing.T) {
	t.Parallel()
	d := mailboxtest.Open(t, dbtest.Mailbox(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.After(ctx, 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorAs(t, err, new(*fault.Error))
}

// TestK15_KilledConnections: connections that the server ends cost one try, not the pool.
func TestK15_KilledConnections(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn+"?wait_timeout=1")
	d.Put(1, "<MSG/>", "")
	_, err := d.After(t.Context(), 0, 1)
	require.NoError(t, err)
	owner := mailboxtest.Owner(t, dsn)
	require.Eventually(t, func() bool { // the server drops us after a second without a word
		var n int
		return owner.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE()").Scan(&n) == nil && n <= 2
	}, 10*time.Second, 50*time.Millisecond)
	answers, err := d.Mark(t.Context(), []backfill.Mark{{ID: 1, Status: "P"}}, time.Now())
	require.NoError(t, err, "the driver sees a dead connection before it uses it")
	require.Equal(t, backfill.Written, answers[0].Result)
}

// TestK15_ReadOnly: a primary that was demoted refuses nobody's row in particular.
func TestK15_ReadOnly(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	d.Put(1, "<MSG/>", "")
	demoted := mailboxtest.Open(t, dsn+"?tx_read_only=1")
	_, err := demoted.Mark(t.Context(), []backfill.Mark{{ID: 1, Status: "P"}}, time.Now())
	require.Equal(t, fault.Outage, fault.Of(err), "%v", err)
	_, err = demoted.Insert(t.Context(), "<MSG/>", time.Now())
	require.Equal(t, fault.Outage, fault.Of(err), "%v", err)
	require.Equal(t, "NULL", d.Column(1, "CMINMSGS_DATE_PROCESSED"))
}

// TestOldestTransaction: counted in the server's own zone, which is neither ours nor the mailbox's.
func TestOldestTransaction(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	tx, err := mailboxtest.Owner(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // the test is over
	_, err = tx.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG) VALUES ('<MSG/>')")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		age, known, err := d.OldestTransaction(t.Context())
		return err == nil && known && age >= time.Second && age < time.Minute
	}, 10*time.Second, 100*time.Millisecond)
}

// TestOldestTransactionNeedsTheRight: without PROCESS the probe says so.
func TestOldestTransactionNeedsTheRight(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	user := "u" + strings.ToLower(rand.Text()[:12])
	schema := dsn[strings.LastIndex(dsn, "/")+1:]
	d.Exec("CREATE USER " + user + " IDENTIFIED BY 'p'")
	t.Cleanup(func() { _, _ = mailboxtest.Owner(t, dsn).Exec("DROP USER " + user) })
	d.Exec("GRANT SELECT, UPDATE, INSERT ON " + schema + ".* TO " + user)
	poor := mailboxtest.Open(t, user+":p"+dsn[strings.Index(dsn, "@"):])
	_, err := poor.After(t.Context(), 0, 1)
	require.NoError(t, err)
	_, _, err = poor.OldestTransaction(t.Context())
	require.ErrorIs(t, err, mailbox.ErrNoProcessRight)
}
