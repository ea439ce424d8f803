package doctor_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/mailbox"
	"msgexchange/db/store"
	"msgexchange/deploy/config"
	"msgexchange/deploy/doctor"
	"msgexchange/workers/kafka"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// world is a healthy system, in which each test breaks one thing.
type world struct {
	doctor.Subject
	dsn string // of the mailbox
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{dsn: dbtest.Mailbox(t)}
	w.Config = config.Defaults()
	w.Config.HTTP.TokensFile = tokens(t, "secret ops operator\n")
	w.Pool, w.Now = dbtest.New(t), time.Now
	w.Topics = map[string]doctor.Topic{"msg": topic{}, "schd": topic{}}
	w.Lane = doctor.Lane{
		Name: "default", Mode: "live", Topics: w.Config.Kafka.Topics(), Pool: w.Pool, Store: store.New(time.UTC), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	require.NoError(t, w.Lane.ClaimMode(t.Context()))
	w.use(t, w.dsn)
	return w
}

// use points the subject to a mailbox.
func (w *world) use(t *testing.T, dsn string) {
	t.Helper()
	zone, err := time.LoadLocation(w.Config.Mailbox.Zone)
	require.NoError(t, err)
	w.Mailbox, err = mailbox.Open(mailbox.Config{DSN: dsn, Zone: zone, Recognise: w.Lane.Recognise})
	require.NoError(t, err)
	box := w.Mailbox
	t.Cleanup(func() { _ = box.Close() })
}

// mysql runs a statement in the mailbox as its owner.
func (w *world) mysql(t *testing.T, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("mysql", w.dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
}

// finding asks everything and gives the answer to one question.
func (w *world) finding(t *testing.T, check string) doctor.Finding {
	t.Helper()
	for _, f := range doctor.Examine(t.Context(), w.Sections(), false, 20*time.Second) {
		if f.Check == check {
			return f
		}
	}
	require.FailNow(t, "no such check", check)
	return doctor.Finding{}
}

// topic is one that answers with err.
type topic struct{ err error }

func (k topic) Check(context.Context) error { return k.err }

func tokens(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/tokens"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	findings := doctor.Examine(t.Context(), w.Sections(), false, 20*time.Second)
	for _, f := range findings {
		switch f.Check {
		case "postgres durability": // test servers run without fsync
			require.Equal(t, doctor.Warn, f.Verdict)
		default:
			require.Equal(t, doctor.OK, f.Verdict, "%+v", f)
			require.Empty(t, f.Do)
		}
		require.NotEmpty(t, f.Found, f.Check)
	}
	require.Equal(t, doctor.Warn, doctor.Worst(findings))
	var table bytes.Buffer
	require.NoError(t, doctor.Print(&table, findings))
	require.Contains(t, table.String(), "→ switch them on")
	require.NotContains(t, table.String(), "secret")
}

// Each fault of the world around is found, with its verdict, and says what to do.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check string
		want  doctor.Verdict
		found string
		harm  func(t *testing.T, w *world)
	}{
		"postgres away": {"postgres", doctor.Fail, "no way there", func(_ *testing.T, w *world) {
			w.Pool, w.PoolErr = nil, errors.New("no way there")
		}},
		"schema missing": {"postgres schema", doctor.Refuse, "not applied", func(t *testing.T, w *world) {
			t.Helper()
			w.postgres(t, dbtest.EmptyDSN(t))
		}},
		"session zone": {"postgres time zone", doctor.Refuse, "Asia/Tokyo", func(t *testing.T, w *world) {
			t.Helper()
			w.postgres(t, w.Pool.Config().ConnString()+"&TimeZone=Asia/Tokyo")
		}},
		"postgres clock": {"postgres clock", doctor.Fail, "1h", func(_ *testing.T, w *world) {
			w.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		}},
		"mailbox clock": {"mailbox clock", doctor.Warn, "s off ours", func(_ *testing.T, w *world) {
			w.Now = func() time.Time { return time.Now().Add(-10 * time.Second) }
		}},
		"the other mode": {"lane mode", doctor.Refuse, "is live, not shadow", func(_ *testing.T, w *world) { w.Lane.Mode = "shadow" }},
		"lane stopped": {"lane", doctor.Fail, "id-regression", func(t *testing.T, w *world) {
			t.Helper()
			_, err := w.Pool.Exec(t.Context(), "UPDATE inbox_cursor SET stopped_reason = 'id-regression'")
			require.NoError(t, err)
		}},
		"mailbox away": {"mailbox", doctor.Fail, "refused", func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, "u:p@tcp(127.0.0.1:1)/none")
		}},
		"no table": {"mailbox", doctor.Fail, "no table", func(t *testing.T, w *world) {
			t.Helper()
			w.mysql(t, "DROP TABLE coutmsgs")
		}},
		"column missing": {"mailbox columns", doctor.Fail, "cminmsgs.CMINMSGS_STATUS", func(t *testing.T, w *world) {
			t.Helper()
			w.mysql(t, "ALTER TABLE cminmsgs DROP COLUMN CMINMSGS_STATUS")
		}},
		"no index": {"mailbox index", doctor.Fail, "no index", func(t *testing.T, w *world) {
			t.Helper()
			w.mysql(t, "ALTER TABLE cminmsgs MODIFY CMINMSGS_ID BIGINT NOT NULL, DROP PRIMARY KEY")
		}},
		"rights": {"mailbox rights", doctor.Fail, "UPDATE on cminmsgs", func(t *testing.T, w *world) {
			t.Helper()
			w.use(t, w.user(t, "SELECT"))
		}},
		"probe right": {"mailbox hole-probe", doctor.Refuse, "PROCESS", func(t *testing.T, w *world) {
			t.Helper()
			w.Config.Pipeline.HoleProbe = true
			w.use(t, w.user(t, "SELECT, INSERT, UPDATE"))
		}},
		"mailbox zone": {"mailbox time zone", doctor.Fail, "8h", func(t *testing.T, w *world) {
			t.Helper()
			w.mysql(t, "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) VALUES ('x', UTC_TIMESTAMP() + INTERVAL 16 HOUR)")
		}},
		"ids below": {"mailbox ids", doctor.Warn, "ids 500 to 500", func(t *testing.T, w *world) {
			t.Helper()
			w.mysql(t, "INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG) VALUES (500, 'x')")
		}},
		"old broker":  {"kafka topic msg", doctor.Refuse, "InitProducerId", func(_ *testing.T, w *world) { w.Topics["msg"] = topic{kafka.ErrTooOld} }},
		"no topic":    {"kafka topic schd", doctor.Fail, "no such topic", func(_ *testing.T, w *world) { w.Topics["schd"] = topic{kafka.ErrNoTopic} }},
		"broker away": {"kafka topic msg", doctor.Fail, "gone", func(_ *testing.T, w *world) { w.Topics["msg"] = topic{errors.New("gone")} }},
		"all trusted": {"http callers", doctor.Warn, "0.0.0.0/0 is trusted", func(_ *testing.T, w *world) {
			w.Config.HTTP.TrustedCIDRs = append(w.Config.HTTP.TrustedCIDRs, netip.MustParsePrefix("0.0.0.0/0"))
		}},
		"no operator": {"http tokens", doctor.Warn, "nobody is an operator", func(t *testing.T, w *world) {
			t.Helper()
			w.Config.HTTP.TokensFile = tokens(t, "x somebody reader\n")
		}},
		"bad tokens": {"http tokens", doctor.Refuse, "line 1", func(t *testing.T, w *world) {
			t.Helper()
			w.Config.HTTP.TokensFile = tokens(t, "x\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			c.harm(t, w)
			f := w.finding(t, c.check)
			require.Equal(t, c.want, f.Verdict, "%+v", f)
			require.Contains(t, f.Found, c.found)
			require.NotEmpty(t, f.Do)
		})
	}
}

// postgres points the subject to another database or session.
func (w *world) postgres(t *testing.T, dsn string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w.Pool, w.Lane.Pool = pool, pool
}

// user makes a user of the mailbox with these rights only.
func (w *world) user(t *testing.T, rights string) string {
	t.Helper()
	c, err := mysql.ParseDSN(w.dsn)
	require.NoError(t, err)
	name := "u" + strings.TrimPrefix(c.DBName, "mailbox_")[:12]
	w.mysql(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'pw'", name))
	t.Cleanup(func() {
		db, err := sql.Open("mysql", w.dsn)
		require.NoError(t, err)
		defer func() { _ = db.Close() }()
		_, err = db.ExecContext(context.WithoutCancel(t.Context()), fmt.Sprintf("DROP USER %s@'%%'", name))
		require.NoError(t, err)
	})
	w.mysql(t, fmt.Sprintf("GRANT %s ON %s.* TO %s@'%%'", rights, c.DBName, name))
	c.User, c.Passwd = name, "pw"
	return c.FormatDSN()
}

// While PostgreSQL is away too, the mailbox is not passed over: who mends the one is to know of the other.
func TestMailboxIsAskedWithoutPostgres(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Pool, w.PoolErr = nil, errors.New("no way there")
	require.Equal(t, doctor.Skipped, w.finding(t, "mailbox").Verdict)
	require.Contains(t, w.finding(t, "mailbox").Found, "answers")
	w.use(t, "u:p@tcp(127.0.0.1:1)/none")
	require.Equal(t, doctor.Fail, w.finding(t, "mailbox").Verdict)
	require.Contains(t, w.finding(t, "mailbox").Found, "refused")
}

// What cannot be asked is skipped, and a start asks only what it must.
func TestSectionsEndWhereTheyCannotGoOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.use(t, "u:p@tcp(127.0.0.1:1)/none")
	skipped := w.finding(t, "mailbox columns")
	require.Equal(t, doctor.Skipped, skipped.Verdict)
	require.Equal(t, "not looked at: mailbox is FAIL", skipped.Found, "says why")
	var asked []string
	for _, f := range doctor.Examine(t.Context(), w.Sections(), true, 20*time.Second) {
		asked = append(asked, f.Check)
	}
	require.Empty(t, cmp.Diff([]string{
		"postgres", "postgres time zone", "lane mode", "lane topics", "mailbox", "mailbox time zone", "mailbox hole-probe", "kafka topic msg",
		"kafka topic schd", "http callers",
	}, asked))
}
