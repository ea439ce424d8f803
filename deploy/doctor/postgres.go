package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/jobs/fault"
)

// maxSkew is how far clocks may lie apart before times of different systems can no longer be compared.
const (
	maxSkew  = 2 * time.Second
	hopeless = time.Minute
)

func (s Subject) postgres() Section {
	return Section{
		{Name: "postgres", AtStart: true, Look: s.pgServer},
		{Name: "postgres schema", Look: s.pgSchema},
		{Name: "postgres rights", Look: s.pgRights},
		{Name: "postgres time zone", AtStart: true, Look: s.pgZone},
		{Name: "postgres clock", Look: s.pgClock},
		{Name: "postgres durability", Look: s.pgDurability},
		{Name: "lane name", Look: s.laneName},
		{Name: "lane mode", AtStart: true, Look: s.laneMode},
		{Name: "lane topics", AtStart: true, Look: s.laneTopics},
		{Name: "lane", Look: s.laneRuns},
	}
}

func (s Subject) pgServer(ctx context.Context) Finding {
	if s.Pool == nil {
		return bad(Fail, "check pg.dsn, the server, and the network between", "%s", fault.Text(s.PoolErr))
	}
	version, err := db.CheckServer(ctx, s.Pool)
	switch {
	case errors.Is(err, db.ErrOldServer):
		return bad(Refuse, "upgrade the server to 14 or newer", "%s", fault.Text(err))
	case errors.Is(err, db.ErrPooler):
		return bad(Refuse, "let pg.dsn name the server itself", "%s", fault.Text(err))
	case err != nil:
		return bad(Fail, "check pg.dsn, the server, and the network between", "%s", fault.Text(err))
	}
	return well("PostgreSQL %s", version)
}

func (s Subject) pgSchema(ctx context.Context) Finding {
	ok, detail, err := db.SchemaCurrent(ctx, s.Pool)
	if err != nil {
		return unread(err)
	}
	if !ok {
		return bad(Refuse, "run msgexchange migrate up", "%s", detail)
	}
	return well("%s", detail)
}

func (s Subject) pgRights(ctx context.Context) Finding {
	const missing = `SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
		AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
			AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) ORDER BY relname`
	rows, err := s.Pool.Query(ctx, missing)
	if err != nil {
		return unread(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return unread(err)
	}
	if len(tables) > 0 {
		return bad(Fail, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … and USAGE ON ALL SEQUENCES to the user of pg.dsn",
			"not allowed to read and write %s", strings.Join(tables, ", "))
	}
	return well("may read and write every table")
}

func (s Subject) pgZone(ctx context.Context) Finding {
	var zone string
	if err := s.Pool.QueryRow(ctx, "SELECT current_setting('TimeZone')").Scan(&zone); err != nil {
		return unread(err)
	}
	if zone != "UTC" {
		return bad(Refuse, "take TimeZone out of pg.dsn", "the session's zone is %s; it must be UTC", zone)
	}
	return well("UTC")
}

func (s Subject) pgClock(ctx context.Context) Finding {
	return s.clock(func() (at time.Time, err error) {
		err = s.Pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
		return at, err
	})
}

// clock compares a server's clock with ours, which is taken to have shown the middle of the question when it was asked.
func (s Subject) clock(ask func() (time.Time, error)) Finding {
	before := s.Now()
	theirs, err := ask()
	if err != nil {
		return unread(err)
	}
	took := s.Now().Sub(before)
	skew := theirs.Sub(before.Add(took / 2)).Round(time.Millisecond)
	const do = "set both machines by the same time server"
	switch {
	case skew.Abs() > hopeless+took:
		return bad(Fail, do, "%v off ours: late and expired are told wrongly", skew)
	case skew.Abs() > maxSkew+took:
		return bad(Warn, do, "%v off ours", skew)
	}
	return well("%v off ours", skew)
}

func (s Subject) pgDurability(ctx context.Context) Finding {
	var fsync, commit, pages string
	const query = "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')"
	if err := s.Pool.QueryRow(ctx, query).Scan(&fsync, &commit, &pages); err != nil {
		return unread(err)
	}
	if fsync == "off" || commit == "off" || pages == "off" {
		return bad(Warn, "switch them on: what is committed must survive a crash",
			"fsync %s, synchronous_commit %s, full_page_writes %s", fsync, commit, pages)
	}
	return well("fsync %s, synchronous_commit %s", fsync, commit)
}

// unread is the finding about what could not be asked.
func unread(err error) Finding {
	return bad(Fail, "look why the question was not answered, and ask again", "%s", fault.Text(err))
}
