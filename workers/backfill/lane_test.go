package backfill

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/mailbox/mailboxtest"
	"msgexchange/db/store"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/fault"
	"msgexchange/workers/drain"
)

// TestLockedMailbox: rows that somebody holds are not waited for; the others are paid in the same step, and those that were
// held when it is over.
func TestLockedMailbox(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for id := int64(1); id <= 200; id++ {
		r.owe(id, "SUCCEEDED")
	}
	holder, err := mailboxtest.Owner(t, r.dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer holder.Rollback() //nolint:errcheck // over by then
	_, err = holder.ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_STATUS = 'HELD' WHERE CMINMSGS_ID < 150")
	require.NoError(t, err)
	require.True(t, r.step().Again)
	require.Equal(t, "paid", r.debt(151))
	require.Equal(t, "paid", r.debt(200))
	require.Equal(t, "owed in 30s, tries 1", r.debt(1))
	require.NoError(t, holder.Rollback())
	r.clock = r.clock.Add(30 * time.Second)
	require.True(t, r.step().Again)
	require.Equal(t, "paid", r.debt(1))
}

// cutting is a mailbox whose time is over after some rows.
type cutting struct {
	Mailbox
	after int
}

func (c cutting) Mark(ctx context.Context, marks []backfill.Mark, at time.Time) ([]backfill.Answer, error) {
	answers, err := c.Mailbox.Mark(ctx, marks[:c.after], at)
	if err == nil {
		err = fault.New(fault.Outage, "mailbox", "time is over")
	}
	return answers, err
}

// TestPartialAnswer: what is known is settled, the rest spends nothing and is due again.
func TestPartialAnswer(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for id := int64(1); id <= 3; id++ {
		r.owe(id, "SUCCEEDED")
	}
	r.work.mailbox = cutting{r.Desk, 2}
	_, err := r.work.Step(t.Context(), r.fence)
	require.Equal(t, fault.Outage, fault.Of(err))
	require.Equal(t, []string{"paid", "paid", "owed in 0s, tries 0"}, []string{r.debt(1), r.debt(2), r.debt(3)})
}

// TestK14_ReusedID: an id that was given out again is another message's: its row is not marked for the old one.
func TestK14_ReusedID(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	r.owe(2, "SUCCEEDED")
	r.exec("UPDATE proc_state SET received_at = '2026-11-30 00:00:00Z'") // 08:00 in the mailbox
	r.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_RECEIVED = '2026-11-30 08:00:00' WHERE CMINMSGS_ID = 1")
	r.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_RECEIVED = '2026-11-30 08:45:00' WHERE CMINMSGS_ID = 2")
	r.step()
	require.Equal(t, "paid", r.debt(1))
	require.Equal(t, "given up: row-missing", r.debt(2))
	require.Equal(t, "NULL", r.Column(2, "CMINMSGS_DATE_PROCESSED"))
}

// TestK14_StoppedLane: while ids are in doubt nothing is marked.
func TestK14_StoppedLane(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.owe(1, "SUCCEEDED")
	r.exec("INSERT INTO inbox_cursor (lane, stopped_reason, stopped_at, updated_at) VALUES ($1, 'id-regression', $2, $2)", lane, r.clock)
	require.Equal(t, drain.Next{Wait: notToBeHad}, r.step())
	require.Equal(t, "owed in 0s, tries 0", r.debt(1))
	r.exec("UPDATE inbox_cursor SET stopped_reason = NULL")
	r.step()
	require.Equal(t, "paid", r.debt(1))
}

// TestResume: marks given up or waiting are due again, with no tries spent; what has no mark to be written says why.
func TestResume(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for id := int64(1); id <= 5; id++ {
		r.owe(id, "SUCCEEDED")
	}
	r.work.config.Policy.MaxAttempts = 1
	r.work.mailbox = refusing{r.Desk, map[int64]bool{1: true}}
	r.step() // 1 is given up, the others are paid
	require.Equal(t, "given up: attempts-spent", r.debt(1))
	r.work.config.Policy.MaxAttempts = 3
	r.owe(6, "SUCCEEDED")
	r.work.mailbox = refusing{r.Desk, map[int64]bool{6: true}}
	r.step() // 6 waits
	r.owe(7, "SUCCEEDED")
	_, err := r.work.claim(t.Context(), r.fence) // 7 is being written
	require.NoError(t, err)
	r.exec("INSERT INTO proc_state (msg_id, created_at, updated_at) VALUES (8, $1, $1)", r.clock)
	r.owe(9, "SUCCEEDED")
	r.exec("UPDATE proc_state SET backfill_next_at = NULL WHERE msg_id = 9")
	r.exec("INSERT INTO proc_state_hst (msg_id, created_at, updated_at, archived_at) VALUES (10, $1, $1, $1)", r.clock)
	r.exec("INSERT INTO inbox_cursor (lane, updated_at) VALUES ($1, $2)", lane, r.clock)

	var got []store.Resumed
	require.NoError(t, db.InTx(t.Context(), r.pool, func(tx pgx.Tx) (err error) {
		got, err = r.work.store.ResumeDebts(t.Context(), tx, []int64{6, 1, 2, 7, 8, 9, 10, 11}, r.clock)
		return err
	}))
	require.Equal(t, []store.Resumed{
		{ID: 6, Known: true, Resumed: true},
		{ID: 1, Known: true, Resumed: true},
		{ID: 2, Known: true, Why: "already written"},
		{ID: 7, Known: true, Why: "being written at this moment"},
		{ID: 8, Known: true, Why: "not finished: no mark is owed yet"},
		{ID: 9, Known: true, Why: "no mark is wanted"},
		{ID: 10, Known: true, Why: "archived"},
		{ID: 11},
	}, got)
	require.Equal(t, "owed in 0s, tries 0", r.debt(1))
	r.work.mailbox = r.Desk
	r.step()
	require.Equal(t, []string{"paid", "paid"}, []string{r.debt(1), r.debt(6)})
}
