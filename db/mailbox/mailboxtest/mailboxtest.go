// Package mailboxtest is what any mailbox must do for us, run against real InnoDB and against the in-process stand-in of
// the demo. For tests only.
package mailboxtest

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db/mailbox"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
)

// Zone is that of the mailbox in the suite.
const Zone = "Asia/Shanghai"

// Shanghai loads Zone.
func Shanghai(tb testing.TB) *time.Location {
	tb.Helper()
	zone, err := time.LoadLocation(Zone)
	require.NoError(tb, err)
	return zone
}

// Desk is a mailbox under test and the hand of its owner.
type Desk struct {
	*mailbox.Mailbox
	tb    testing.TB
	owner *sql.DB
}

// Open opens the mailbox behind dsn, twice: as we do, and as its owner does.
func Open(tb testing.TB, dsn string) *Desk {
	tb.Helper()
	m, err := mailbox.Open(mailbox.Config{DSN: dsn, Zone: Shanghai(tb)})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = m.Close() })
	return &Desk{Mailbox: m, tb: tb, owner: Owner(tb, dsn)}
}

// Owner connects without any of our settings.
func Owner(tb testing.TB, dsn string) *sql.DB {
	tb.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	require.NoError(tb, err)
	connector, err := mysql.NewConnector(cfg)
	require.NoError(tb, err)
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs a statement as the owner.
func (d *Desk) Exec(stmt string, args ...any) {
	d.tb.Helper()
	_, err := d.owner.ExecContext(d.tb.Context(), stmt, args...)
	require.NoError(d.tb, err)
}

// Put inserts a row with the id as the owner; received in MySQL's form, empty for NULL.
func (d *Desk) Put(id int64, text, received string) {
	d.tb.Helper()
	d.Exec("INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?, ?, ?, 'VALID')",
		id, text, sql.NullString{String: received, Valid: received != ""})
}

// Column reads one column of a row as text; NULL is "NULL".
func (d *Desk) Column(id int64, name string) string {
	d.tb.Helper()
	var s sql.NullString
	require.NoError(d.tb, d.owner.QueryRowContext(d.tb.Context(), "SELECT CAST("+name+" AS CHAR) FROM cminmsgs WHERE CMINMSGS_ID = ?", id).Scan(&s))
	if !s.Valid {
		return "NULL"
	}
	return s.String
}

// All collects the rows of a range with their texts.
func (d *Desk) All(ctx context.Context, r inbox.Range) ([]inbox.Message, error) {
	var out []inbox.Message
	for m, err := range d.Texts(ctx, r) {
		if err != nil {
			return out, err
		}
		out = append(out, m)
	}
	return out, nil
}

// Run runs the suite; dsn gives each case a mailbox of its own, empty.
func Run(t *testing.T, dsn func(t *testing.T) string) {
	t.Helper()
	cases := map[string]func(d *Desk){
		"reading in order":       readInOrder,
		"texts":                  texts,
		"K16 received times":     receivedTimes,
		"extent and step":        extentAndStep,
		"inserting":              inserting,
		"K17 four results":       fourResults,
		"subsystem columns":      subsystemColumns,
		"marks of a large batch": largeBatch,
		"requests":               requests,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(Open(t, dsn(t)))
		})
	}
}

func readInOrder(d *Desk) {
	t := d.tb
	for _, id := range []int64{9, 3, 12, 5} {
		d.Put(id, "<MSG/>", "2026-11-30 09:00:00")
	}
	d.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = '2026-11-30 09:00:01', CMINMSGS_STATUS = 'ODD' WHERE CMINMSGS_ID = 9")

	rows, err := d.After(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, []int64{3, 5, 9, 12}, ids(rows), "marks and status do not count")
	rows, err = d.After(t.Context(), 3, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 9}, ids(rows))
	rows, err = d.After(t.Context(), 12, 2)
	require.NoError(t, err)
	require.Empty(t, rows)
	rows, err = d.In(t.Context(), []inbox.Range{{First: 12, Last: 99}, {First: 1, Last: 4}, {First: 6, Last: 8}}, 10)
	require.NoError(t, err)
	require.Equal(t, []int64{3, 12}, ids(rows))
	rows, err = d.In(t.Context(), nil, 10)
	require.NoError(t, err)
	require.Empty(t, rows)
}

func texts(d *Desk) {
	t := d.tb
	const chinese = "<MSG>\u822a\u73ed\u5ef6\u8bef \U0001F6EB</MSG>"
	large := strings.Repeat("x", 11<<20)
	d.Put(1, chinese, "2026-11-30 09:00:00")
	d.Put(2, "", "")
	d.Put(4, large, "2026-11-30 09:00:02")

	all, err := d.All(t.Context(), inbox.Range{First: 1, Last: 9})
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, chinese, all[0].Text)
	require.Equal(t, len(chinese), all[0].Size, "in bytes")
	require.Equal(t, inbox.Message{Row: inbox.Row{ID: 2}}, all[1], "blank text, no date")
	require.Equal(t, int64(4), all[2].ID)
	require.True(t, all[2].Oversize)
	require.Empty(t, all[2].Text, "never loaded")
	require.Equal(t, len(large), all[2].Size)

	for _, err := range d.Texts(t.Context(), inbox.Range{First: 1, Last: 9}) {
		require.NoError(t, err)
		break // the connection must come back clean
	}
	text, found, err := d.Text(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, chinese, string(text))
	for _, id := range []int64{3, 4} {
		_, found, err = d.Text(t.Context(), id)
		require.NoError(t, err)
		require.False(t, found, "missing, oversize")
	}
}

func receivedTimes(d *Desk) {
	t := d.tb
	d.Put(1, "<MSG/>", "2026-11-30 00:30:00")
	d.Put(2, "<MSG/>", "")
	rows, err := d.After(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 29, 16, 30, 0, 0, time.UTC), rows[0].ReceivedAt.UTC(), "00:30 in Shanghai is 16:30Z of the day before")
	require.Zero(t, rows[1].ReceivedAt)
}

func extentAndStep(d *Desk) {
	t := d.tb
	e, step, err := d.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, inbox.Extent{}, e, "empty")
	require.Equal(t, int64(1), step)
	d.Put(7, "<MSG/>", "")
	d.Put(5, "<MSG/>", "")
	e, _, err = d.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, inbox.Extent{Min: 5, Max: 7}, e)
}

func inserting(d *Desk) {
	t := d.tb
	at := time.Date(2026, 11, 29, 16, 30, 0, 999e6, time.UTC)
	first, err := d.Insert(t.Context(), "<MSG>\u4e00</MSG>", at)
	require.NoError(t, err)
	second, err := d.Insert(t.Context(), "<MSG>'\\\"</MSG>", at)
	require.NoError(t, err)
	require.Greater(t, second, first)
	require.Equal(t, "2026-11-30 00:30:00", d.Column(first, "CMINMSGS_DATE_RECEIVED"), "in the mailbox's zone, not rounded up")
	require.Equal(t, "VALID", d.Column(first, "CMINMSGS_STATUS"))
	require.Equal(t, "NULL", d.Column(first, "CMINMSGS_DATE_PROCESSED"))
	text, _, err := d.Text(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "<MSG>'\\\"</MSG>", string(text))
}

// fourResults is K17: mark twice, a foreign mark, a row that is gone.
func fourResults(d *Desk) {
	t := d.tb
	for id := int64(1); id <= 3; id++ {
		d.Put(id, "<MSG/>", "")
	}
	d.Exec("UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = '2026-11-01 01:02:03' WHERE CMINMSGS_ID = 2")
	at := time.Date(2026, 11, 30, 1, 3, 11, 999e6, time.UTC)
	marks := []backfill.Mark{{ID: 1, Status: "PROCESSED"}, {ID: 2, Status: "PROCESSED"}, {ID: 9, Status: "PROCESSED"}, {ID: 3, Status: "DEAD"}}

	results := func() (out []backfill.Result) {
		answers, err := d.Mark(t.Context(), marks, at)
		require.NoError(t, err)
		for i, a := range answers {
			require.Equal(t, marks[i].ID, a.ID)
			require.NoError(t, a.Err)
			out = append(out, a.Result)
		}
		return out
	}
	require.Equal(t, []backfill.Result{backfill.Written, backfill.Already, backfill.Missing, backfill.Written}, results())
	require.Equal(t, []backfill.Result{backfill.Already, backfill.Already, backfill.Missing, backfill.Already}, results(), "in the same second")

	require.Equal(t, "2026-11-30 09:03:11", d.Column(1, "CMINMSGS_DATE_PROCESSED"))
	require.Equal(t, "PROCESSED", d.Column(1, "CMINMSGS_STATUS"))
	require.Equal(t, "DEAD", d.Column(3, "CMINMSGS_STATUS"))
	require.Equal(t, "2026-11-01 01:02:03", d.Column(2, "CMINMSGS_DATE_PROCESSED"), "never overwritten")
	require.Equal(t, "VALID", d.Column(2, "CMINMSGS_STATUS"))

	d.Put(4, "<MSG/>", "")
	unmarked, err := d.Unmarked(t.Context(), []int64{1, 2, 4, 9})
	require.NoError(t, err)
	require.Equal(t, []int64{4}, unmarked, "a row that is gone is none without a mark")
}

func subsystemColumns(d *Desk) {
	t := d.tb
	for id := int64(1); id <= 4; id++ {
		d.Put(id, "<MSG/>", "")
	}
	d.Exec("UPDATE cminmsgs SET CMINMSGS_SUBSYSTEM_NAME = 'ODB', CMINMSGS_SUBSYSTEM_SEQUENCE = 7 WHERE CMINMSGS_ID = 2")
	meta := message.Meta{SNDR: "AODB", SEQN: 1234, DTTM: time.Date(2026, 11, 30, 1, 3, 11, 0, time.UTC), TYPE: "FLOP", STYP: "PSDT"}
	long := meta
	long.SNDR, long.SEQN = "AODB2", 99_999_999
	_, err := d.Mark(t.Context(), []backfill.Mark{
		{ID: 1, Status: "P", Meta: meta}, {ID: 2, Status: "P", Meta: meta}, {ID: 3, Status: "P"}, {ID: 4, Status: "P", Meta: long},
	}, time.Now())
	require.NoError(t, err)
	row := func(id int64) (out []string) {
		for _, c := range []string{"NAME", "SEQUENCE", "DATE_SENT", "TYPE", "SUBTYPE"} {
			out = append(out, d.Column(id, "CMINMSGS_SUBSYSTEM_"+c))
		}
		return out
	}
	require.Equal(t, []string{"AODB", "1234", "2026-11-30 09:03:11", "FLOP", "PSDT"}, row(1))
	require.Equal(t, []string{"ODB", "7", "2026-11-30 09:03:11", "FLOP", "PSDT"}, row(2), "what is there stays")
	require.Equal(t, []string{"NULL", "NULL", "NULL", "NULL", "NULL"}, row(3), "no META")
	require.Equal(t, []string{"NULL", "NULL", "2026-11-30 09:03:11", "FLOP", "PSDT"}, row(4), "what does not fit is left out")
}

func largeBatch(d *Desk) {
	t := d.tb
	const n = 500
	marks := make([]backfill.Mark, n)
	for i := range marks {
		d.Put(int64(i+1), "<MSG/>", "")
		marks[i] = backfill.Mark{ID: int64(i + 1), Status: "PROCESSED", Meta: message.Meta{SNDR: "AODB", SEQN: int64(i + 1), TYPE: "FLOP", STYP: "STND", DTTM: time.Now()}}
	}
	answers, err := d.Mark(t.Context(), marks, time.Now())
	require.NoError(t, err)
	for _, a := range answers {
		require.Equal(t, backfill.Written, a.Result)
	}
	require.Equal(t, "1", d.Column(1, "CMINMSGS_SUBSYSTEM_SEQUENCE"))
	require.Equal(t, "500", d.Column(n, "CMINMSGS_SUBSYSTEM_SEQUENCE"))
}

func requests(d *Desk) {
	t := d.tb
	const text = "<MSG>one</MSG>"
	before, err := d.Clock(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), before, 30*time.Second)
	id, at, err := d.SendRequest(t.Context(), text, "ROUTE-1")
	require.NoError(t, err)
	require.False(t, at.Before(before))
	require.WithinDuration(t, time.Now(), at, 30*time.Second)
	other, _, err := d.SendRequest(t.Context(), "<MSG>two</MSG>", "ROUTE-2")
	require.NoError(t, err)
	require.Greater(t, other, id)

	d.requireRequestRow(id, text, "ROUTE-1", at)

	again, inserted, err := d.SendRequest(t.Context(), text, "ROUTE-1")
	require.NoError(t, err)
	require.Equal(t, id, again, "sent before, so it is not sent again")
	require.True(t, at.Equal(inserted), "%v, %v", at, inserted)

	var g errgroup.Group
	found := make([]int64, 4)
	for i := range found {
		g.Go(func() (err error) {
			found[i], _, err = d.SendRequest(t.Context(), "<MSG>three</MSG>", "ROUTE-1")
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, slices.Compact(found), 1, "whoever tries at the same time finds the one row: %v", found)

	taken, err := d.Taken(t.Context(), []int64{id, other})
	require.NoError(t, err)
	require.Empty(t, taken)
	d.Exec("UPDATE coutmsgs SET COUTMSGS_DATE_SENT = '2026-11-30 00:30:00' WHERE COUTMSGS_ID = ?", id)
	taken, err = d.Taken(t.Context(), []int64{id, other})
	require.NoError(t, err)
	require.Len(t, taken, 1)
	require.Equal(t, "2026-11-29T16:30:00Z", taken[id].UTC().Format(time.RFC3339))
}

// requireRequestRow holds a row of COUTMSGS against the dictionary, column by column (dictionary 1).
func (d *Desk) requireRequestRow(id int64, text, routing string, at time.Time) {
	t := d.tb
	want := map[string]string{
		"COUTMSGS_CLOB_MSG": text, "COUTMSGS_DATE_INSERTED": at.In(Shanghai(t)).Format(time.DateTime), "COUTMSGS_DATE_SENT": "",
		"ROUTINGID": routing, "COUTMSGS_TRUEFALS_GROUP": "0", "COUTMSGS_NO_MESSAGES": "", "COUTMSGS_GROUP_ORDER": "",
		"COUTMSGS_GROUP_ID": "", "COUTMSGS_FINAL_GROUP_IND": "0", "COUTMSGS_ACK_REQD": "0", "COUTMSGS_ACK_RESEND_TIMES": "0",
		"COUTMSGS_ACK_DATE_RECV": "", "COUTMSGS_ENCRYPT": "0", "COUTMSGS_ERROR": "0",
	}
	for column, value := range want {
		var got sql.NullString
		require.NoError(t, d.owner.QueryRowContext(t.Context(), "SELECT CAST("+column+" AS CHAR) FROM coutmsgs WHERE COUTMSGS_ID = ?", id).Scan(&got))
		require.Equal(t, sql.NullString{String: value, Valid: value != ""}, got, column)
	}
}

func ids(rows []inbox.Row) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out
}
