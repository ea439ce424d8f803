package mailbox_test

import (
	"context"
	"crypto/rand"
	"fmt"
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

// held is a mailbox with rows 1 … 4 of which somebody holds 2.
func held(t *testing.T) *mailboxtest.Desk {
	t.Helper()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	for id := int64(1); id <= 4; id++ {
		d.Put(id, "<MSG/>", "")
	}
	tx, err := mailboxtest.Owner(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_STATUS = 'HELD' WHERE CMINMSGS_ID = 2")
	require.NoError(t, err)
	return d
}

func results(answers []backfill.Answer) []backfill.Result {
	out := make([]backfill.Result, len(answers))
	for i, a := range answers {
		out[i] = a.Result
	}
	return out
}

// TestMarkRefusesOne: a row that somebody holds is transient; its neighbours are marked. On servers that can not skip it,
// each such row costs the wait for a lock; when the time is over meanwhile, what is known is answered.
func TestMarkRefusesOne(t *testing.T) {
	t.Parallel()
	marks := []backfill.Mark{{ID: 1, Status: "P"}, {ID: 2, Status: "P"}, {ID: 9, Status: "P"}, {ID: 4, Status: "P"}}
	want := []backfill.Result{backfill.Written, backfill.Transient, backfill.Missing, backfill.Written}
	for _, skips := range []bool{true, false} {
		t.Run(fmt.Sprintf("skip locked %v", skips), func(t *testing.T) {
			t.Parallel()
			d := held(t)
			if !skips {
				mailbox.ForgetSkipLocked(d.Mailbox)
			}
			answers, err := d.Mark(t.Context(), marks, time.Now())
			require.NoError(t, err)
			require.Equal(t, want, results(answers))
			require.Equal(t, fault.Infra, fault.Of(answers[1].Err))
		})
	}
	d := held(t)
	mailbox.ForgetSkipLocked(d.Mailbox)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // one wait for all, and half of the one for row 2
	defer cancel()
	answers, err := d.Mark(ctx, marks, time.Now())
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, want[:1], results(answers))
}

// TestMarkOfReusedID: a row received at another moment is another message's.
func TestMarkOfReusedID(t *testing.T) {
	t.Parallel()
	d := mailboxtest.Open(t, dbtest.Mailbox(t))
	for id, received := range []string{"2026-11-30 09:00:00", "2026-11-30 09:00:01", ""} {
		d.Put(int64(id)+1, "<MSG/>", received)
	}
	at := time.Date(2026, 11, 30, 1, 0, 0, 400, time.UTC)
	answers, err := d.Mark(t.Context(), []backfill.Mark{{ID: 1, Status: "P", ReceivedAt: at}, {ID: 2, Status: "P", ReceivedAt: at}, {ID: 3, Status: "P", ReceivedAt: at}}, at)
	require.NoError(t, err)
	require.Equal(t, []backfill.Result{backfill.Written, backfill.Missing, backfill.Written}, results(answers))
	require.Equal(t, "NULL", d.Column(2, "CMINMSGS_DATE_PROCESSED"))
}

// TestProbeLeavesWritersAlone: hole-probe looks at the server's transactions and takes no lock: writers that wait for nothing
// at all write on beside it.
func TestProbeLeavesWritersAlone(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Mailbox(t)
	d := mailboxtest.Open(t, dsn)
	d.Put(1, "<MSG/>", "")
	probing := make(chan error, 1)
	stop, cancel := context.WithCancel(t.Context())
	go func() {
		for stop.Err() == nil {
			if _, _, err := d.OldestTransaction(stop); err != nil && stop.Err() == nil {
				probing <- err
				return
			}
		}
		probing <- nil
	}()
	writer := mailboxtest.Owner(t, dsn+"?innodb_lock_wait_timeout=0")
	for range 100 {
		tx, err := writer.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG) VALUES ('<MSG/>')")
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_STATUS = 'VALID' WHERE CMINMSGS_ID = 1")
		require.NoError(t, err)
		var locks int
		require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p"+
			" ON p.ID = t.trx_mysql_thread_id WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID() AND t.trx_rows_locked > 0").Scan(&locks))
		require.Zero(t, locks, "of the probe's connection")
		require.NoError(t, tx.Commit())
	}
	cancel()
	require.NoError(t, <-probing)
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
