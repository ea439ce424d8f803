package systemtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbserver"
	"msgexchange/db/dbtest"
)

// exec runs a statement in the mailbox as its owner.
func (w *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := w.mailbox.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err, statement)
}

// A lower id that commits after its hole was passed is never silent: counted, told, and applied without turning back time (K11).
func TestK11_LateRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", "MSGX_PIPELINE_MAX_COMMIT_DELAY=2s", "MSGX_PIPELINE_LATE_DETECT_PERIOD=1s")
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	tx, err := w.mailbox.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	late := insert(t, tx, envelope(2, "FLOP", "STND", "<FLOP><FLID>1</FLID><STND>late</STND></FLOP>"))
	w.put(t, flop(3, 1, "STND", "newer"))
	w.settled(t, 2, 20*time.Second)
	require.NoError(t, tx.Commit())
	w.settled(t, 3, 20*time.Second)
	require.Equal(t, "true SUCCEEDED", w.text(t, "SELECT late || ' ' || state FROM proc_state WHERE msg_id = $1", late))
	require.Equal(t, "newer", w.text(t, "SELECT stnd FROM flight_schd WHERE flid = 1"), "time is not turned back")
	require.Contains(t, p.log.String(), `"late arrival"`)
	_, metrics := get(t, p.address()+"/metrics")
	require.Contains(t, metrics, "msgx_late_arrival_detected_total 1")
	require.Contains(t, metrics, "msgx_hole_aged_out_total 1")
}

// A server whose ids come in steps of three: 300 rows with a rolled-back one among them are all through within one window
// and five seconds (K13).
func TestK13_StepOfThree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	step := func(c *mysql.Config) { c.Params = map[string]string{"auto_increment_increment": "3"} }
	_, _, env := w.doors(t, step)
	writer, err := w.mailbox.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = writer.Close() }()
	_, err = writer.ExecContext(t.Context(), "SET SESSION auto_increment_increment = 3")
	require.NoError(t, err)
	insert(t, writer, schedule(1, 1, flights))
	w.start(t, "a", append(env, "MSGX_PIPELINE_MAX_COMMIT_DELAY=4s")...).address()
	var last int64
	for i := range 300 {
		if i == 150 {
			tx, err := writer.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			insert(t, tx, "<MSG/>")
			require.NoError(t, tx.Rollback())
		}
		last = insert(t, writer, flop(2+i, 1+i%flights, "STND", fmt.Sprint(i)))
	}
	require.GreaterOrEqual(t, last, int64(900))
	w.settled(t, 301, 9*time.Second)
	require.Equal(t, int64(1), w.number(t, "SELECT count(*) FROM inbox_hole"), "only what was rolled back was waited for")
	require.Equal(t, int64(3), w.number(t, "SELECT id_step FROM inbox_cursor"))
	w.requireExact(t, 301)
}

// The mailbox is emptied and its ids start again: alarm and stop, nothing is taken for a duplicate and no old mark lands on a
// new row; after the operator's reseed the reused ids are messages like any others, and newer than all before (K14).
func TestK14_TruncateAndReseed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := []string{asOperator(t), "MSGX_PIPELINE_LATE_DETECT_PERIOD=1s"}
	busy := w.command(t, "a", []string{"serve", "--roles", "http,poll,head,deliver"}, append(env, "MSGX_PIPELINE_MAX_COMMIT_DELAY=3s")...)
	w.put(t, schedule(1, 1, 2))
	for i := range 5 {
		w.put(t, flop(2+i, 1, "STND", "old"+fmt.Sprint(i)))
	}
	w.finished(t, 6, 30*time.Second) // their marks are owed: nobody works backfill yet
	status, body := order(t, busy.address()+"/ops/lane/reseed", `{"watermark":"first","reason":"INC-7"}`)
	require.Equal(t, http.StatusBadRequest, status, body)

	w.exec(t, "TRUNCATE TABLE cminmsgs")
	fresh := []int64{w.put(t, flop(50, 1, "STND", "new1")), w.put(t, flop(51, 2, "STND", "new2"))}
	require.Equal(t, []int64{1, 2}, fresh)
	eventually(t, 20*time.Second, func() error {
		_, metrics := get(t, busy.address()+"/metrics")
		if !strings.Contains(metrics, `msgx_inbox_stopped{reason="id-regression"} 1`) {
			return fmt.Errorf("the lane has not stopped")
		}
		return nil
	})
	require.Equal(t, 1, strings.Count(busy.log.String(), `"msg":"inbox stopped"`))
	eventually(t, 20*time.Second, func() error {
		if _, body := get(t, busy.address()+"/readyz"); !strings.Contains(body, "the inbox is stopped: id-regression") {
			return fmt.Errorf("readyz: %s", body)
		}
		return nil
	})
	all := w.start(t, "b", env...)
	all.address()
	require.Equal(t, map[string]int{"SUCCEEDED": 6}, w.states(t), "nothing was taken, nothing is a duplicate")

	status, body = order(t, all.address()+"/ops/lane/reseed", `{"watermark":"min","reason":"restored, INC-7","dryRun":true}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, int64(1), w.number(t, "SELECT count(*) FROM inbox_cursor WHERE stopped_reason IS NOT NULL AND generation = 0"), "a dry run")
	status, body = order(t, all.address()+"/ops/lane/reseed", `{"watermark":"min","reason":"restored, INC-7"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.JSONEq(t, `{"generation":1,"watermark":0,"archived":6,"marksAbandoned":6,"dryRun":false}`, body)

	w.settled(t, 2, 30*time.Second)
	require.Equal(t, map[string]int{"SUCCEEDED": 2}, w.states(t))
	require.Equal(t, []string{"new1 1:1", "new2 1:2"}, []string{w.provenance(t, all, 1), w.provenance(t, all, 2)}, "newer, though the ids are smaller")
	require.Equal(t, int64(6), w.number(t, "SELECT count(*) FROM proc_state_hst WHERE generation = 0 AND backfill_abandoned_reason = 'generation-closed'"))
	require.Equal(t, int64(2), w.number(t, "SELECT count(*) FROM ops_audit WHERE action = 'lane-reseed' AND actor = 'olga' AND reason = 'restored, INC-7'"))
	w.put(t, flop(52, 1, "STND", "new3"))
	w.settled(t, 3, 30*time.Second)
	_, metrics := get(t, all.address()+"/metrics")
	require.Contains(t, metrics, `msgx_inbox_stopped{reason="id-regression"} 0`)
	w.requireInOrder(t, "msg", 2+5+3)
}

// finished waits until n messages are finished, marked or not.
func (w *world) finished(t *testing.T, n int64, within time.Duration) {
	t.Helper()
	eventually(t, within, func() error {
		if done := w.number(t, "SELECT count(*) FROM proc_state WHERE finished_at IS NOT NULL"); done != n {
			return fmt.Errorf("%d of %d messages finished", done, n)
		}
		return nil
	})
}

// provenance gives a flight's stand and which message set it.
func (w *world) provenance(t *testing.T, p *pod, flid int) string {
	t.Helper()
	status, body := get(t, fmt.Sprintf("%s/flights/%d", p.address(), flid))
	require.Equal(t, http.StatusOK, status, body)
	var f struct {
		Flight     struct{ Stnd string }
		Provenance map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(body), &f))
	return fmt.Sprint(f.Flight.Stnd, " ", f.Provenance["stnd"])
}

// A mailbox that ends idle connections after 3 s, whose connections are killed, and that is demoted to read only for a
// minute: what can be read is processed meanwhile, every mark lands, no attempt is spent (K15).
func TestK15_MailboxFailover(t *testing.T) {
	t.Parallel()
	server, err := dbserver.StartMariaDB(t.Context(), dbserver.Options{Zone: dbtest.Zone, Settings: map[string]string{"wait-timeout": "3"}})
	require.NoError(t, err) // dbtest has found one already
	t.Cleanup(func() { _ = server.Stop() })
	mailboxDSN, err := dbserver.MakeMailbox(t.Context(), server.DSN, "mailbox")
	require.NoError(t, err)
	w := newWorldOn(t, mailboxDSN)
	_, _, env := w.doors(t, func(c *mysql.Config) { c.User, c.Passwd = "pods", "p" })
	w.exec(t, "CREATE USER pods@'127.0.0.1' IDENTIFIED BY 'p'")
	w.exec(t, "GRANT SELECT, UPDATE, INSERT ON mailbox.* TO pods@'127.0.0.1'")
	w.start(t, "a", env...)
	stop := w.traffic(t, 100*time.Millisecond)

	kills := 0
	eventually(t, 30*time.Second, func() error {
		rows, err := w.mailbox.QueryContext(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'pods'")
		require.NoError(t, err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var id int64
			require.NoError(t, rows.Scan(&id))
			if _, err := w.mailbox.ExecContext(t.Context(), fmt.Sprint("KILL ", id)); err == nil {
				kills++
			}
		}
		require.NoError(t, rows.Err())
		if kills < 40 {
			return fmt.Errorf("%d connections killed", kills)
		}
		return nil
	})
	w.exec(t, "SET GLOBAL read_only = 1")
	demoted := w.number(t, "SELECT count(*) FROM proc_state WHERE finished_at IS NOT NULL")
	<-time.After(time.Minute)
	require.Greater(t, w.number(t, "SELECT count(*) FROM proc_state WHERE finished_at IS NOT NULL"), demoted, "what can be read is processed")
	require.Positive(t, w.number(t, "SELECT count(*) FROM proc_state WHERE backfill_next_at IS NOT NULL"), "marks wait")
	w.exec(t, "SET GLOBAL read_only = 0")
	n := stop()
	w.settled(t, n, 60*time.Second)
	require.Equal(t, int64(1), w.number(t, "SELECT max(attempts) FROM proc_state"))
	require.LessOrEqual(t, w.number(t, "SELECT max(backfill_attempts) FROM proc_state"), int64(1))
	w.requireExact(t, n)
}

// 00:30 in the mailbox's zone is 16:30Z of the day before, wherever the servers believe they are; dates that are none are NULL
// and stop nobody; the binary brings the zones with it (K16).
func TestK16_ZonesAndZeroDates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(text, received string) {
		w.exec(t, "SET STATEMENT sql_mode = 'ALLOW_INVALID_DATES' FOR INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES (?, ?, 'VALID')", text, received)
	}
	put(schedule(1, 1, 1), "2026-11-30 00:30:00")
	put(flop(2, 1, "STND", "2"), "0000-00-00 00:00:00")
	put(flop(3, 1, "STND", "3"), "2026-02-31 08:00:00")
	put(flop(4, 1, "STND", "4"), "2026-11-30 00:31:00")
	p := w.start(t, "a", "TZ=America/St_Johns")
	w.settled(t, 4, 30*time.Second)
	require.Equal(t, map[string]int{"SUCCEEDED": 4}, w.states(t))
	require.Equal(t, "2026-11-29 16:30:00,NULL,NULL,2026-11-29 16:31:00",
		w.text(t, "SELECT string_agg(coalesce((received_at AT TIME ZONE 'UTC')::text, 'NULL'), ',' ORDER BY msg_id) FROM proc_state"))
	_, metrics := get(t, p.address()+"/metrics")
	require.Contains(t, metrics, "msgx_mailbox_bad_dates_total 2")
	var behind int
	require.NoError(t, w.mailbox.QueryRowContext(t.Context(),
		"SELECT count(*) FROM cminmsgs WHERE ABS(TIMESTAMPDIFF(MINUTE, CMINMSGS_DATE_PROCESSED, UTC_TIMESTAMP() + INTERVAL 8 HOUR)) > 5").Scan(&behind))
	require.Zero(t, behind, "marks are written in the mailbox's zone")
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "msgexchange").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "time/tzdata\n")
}

// Written, already marked by somebody else, row gone: told apart by reading, and nobody's mark is overwritten (K17).
func TestK17_ForeignMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.command(t, "a", []string{"serve", "--roles", "poll,head"})
	for i := range 4 {
		w.put(t, schedule(1+i, 1+i, 1))
	}
	w.finished(t, 4, 30*time.Second)
	w.exec(t, "UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = '2026-01-01 00:00:00', CMINMSGS_STATUS = 'THEIRS' WHERE CMINMSGS_ID = 2")
	w.exec(t, "DELETE FROM cminmsgs WHERE CMINMSGS_ID = 3")
	first.kill()
	env := asOperator(t)
	p := w.start(t, "b", env)
	marks := func() string {
		return w.text(t, `SELECT string_agg(msg_id || CASE WHEN backfill_at IS NOT NULL THEN ' paid' ELSE ' ' || coalesce(backfill_abandoned_reason, 'owed') END, ',' ORDER BY msg_id) FROM proc_state`)
	}
	want := func(s string) {
		eventually(t, 20*time.Second, func() error {
			if got := marks(); got != s {
				return fmt.Errorf("marks are %s", got)
			}
			return nil
		})
	}
	want("1 paid,2 paid,3 row-missing,4 paid")
	// Once more, as after a crash between the mark and its record: it is found, and not written again.
	w.exec(t, "UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = '2026-01-01 00:00:00' WHERE CMINMSGS_ID = 4")
	_, err := w.pg.Exec(t.Context(), "UPDATE proc_state SET backfill_at = NULL, backfill_attempts = 0, backfill_next_at = now() WHERE msg_id = 4")
	require.NoError(t, err)
	status, body := order(t, p.address()+"/ops/backfill/resume", `{"ids":[3,4],"reason":"the row is back"}`)
	require.Equal(t, http.StatusOK, status, body)
	want("1 paid,2 paid,3 row-missing,4 paid")
	var rows string
	require.NoError(t, w.mailbox.QueryRowContext(t.Context(), `SELECT GROUP_CONCAT(CONCAT(CMINMSGS_ID, ' ', CMINMSGS_STATUS, ' ', YEAR(CMINMSGS_DATE_PROCESSED) = 2026
		AND MONTH(CMINMSGS_DATE_PROCESSED) = 1) ORDER BY CMINMSGS_ID) FROM cminmsgs`).Scan(&rows))
	require.Equal(t, "1 PROCESSED 0,2 THEIRS 1,4 PROCESSED 1", rows)
}

// Three idle pods ask the shared mailbox at most once a poll interval between them, and look back once a minute (design §11).
func TestIdleLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.start(t, name).address()
	}
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	const window, lookBack = 20, 5 // seconds; statements
	<-time.After(2 * time.Second)  // until the pace is idle
	before := w.ear.queries.Load()
	<-time.After(window * time.Second)
	asked := w.ear.queries.Load() - before
	t.Logf("%d statements in %d s from three idle pods", asked, window)
	require.Positive(t, asked)
	require.LessOrEqual(t, asked, int64(window+lookBack))
}

// A start with hole-probe on a server that will not show its transactions is refused, and says what is missing (design §4).
func TestHoleProbeNeedsTheRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.poorUser(t)
	_, _, env := w.doors(t, func(c *mysql.Config) { c.User, c.Passwd = user, "p" })
	p := w.start(t, "refused", append(env, "MSGX_PIPELINE_HOLE_PROBE=true")...)
	require.Equal(t, 1, p.exit(30*time.Second))
	require.Contains(t, p.log.String(), "pipeline.hole-probe")
	require.Contains(t, p.log.String(), "PROCESS right")
	w.put(t, schedule(1, 1, 1))
	w.start(t, "without", env...)
	w.settled(t, 1, 30*time.Second)
}

// poorUser makes an account that has the rights the contract asks for, and no more.
func (w *world) poorUser(t *testing.T) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(w.mailboxDSN)
	require.NoError(t, err)
	user := strings.ToLower(cfg.DBName[:20])
	w.exec(t, "CREATE USER "+user+" IDENTIFIED BY 'p'")
	owner := w.mailboxDSN
	t.Cleanup(func() {
		db, err := sql.Open("mysql", owner)
		if err == nil {
			_, _ = db.Exec("DROP USER " + user)
			_ = db.Close()
		}
	})
	w.exec(t, "GRANT SELECT, UPDATE, INSERT ON "+cfg.DBName+".* TO "+user)
	return user
}
