package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"msgexchange/db/mailbox"
	"msgexchange/jobs/fault"
)

func (s Subject) mailbox() Section {
	if s.Pool == nil {
		return Section{{Name: "mailbox", AtStart: true, Look: s.mbReached}}
	}
	return Section{
		{Name: "mailbox", AtStart: true, Look: s.mbServer},
		{Name: "mailbox time zone", AtStart: true, Look: s.mbZone},
		{Name: "mailbox columns", Look: s.mbColumns},
		{Name: "mailbox index", Look: s.mbIndex},
		{Name: "mailbox rights", Look: s.mbRights},
		{Name: "mailbox ids", Look: s.mbIDs},
		{Name: "mailbox clock", Look: s.mbClock},
		{Name: "mailbox hole-probe", AtStart: true, Look: s.mbProbe},
	}
}

// mbReached is all that can be asked without our database, which alone knows whose mailbox it is: what is away is told even so.
func (s Subject) mbReached(ctx context.Context) Finding {
	if err := s.Mailbox.DB().PingContext(ctx); err != nil {
		return bad(Fail, "check mailbox.dsn, the server, and the network between", "%s", fault.Text(err))
	}
	return Finding{Verdict: Skipped, Found: "the server answers; the rest is asked once postgres does"}
}

// mbServer also finds the tables and recognises the mailbox, which every use of it does first.
func (s Subject) mbServer(ctx context.Context) Finding {
	err := s.Mailbox.Ping(ctx)
	switch {
	case errors.Is(err, ErrOtherMailbox):
		return bad(Refuse, "mend mailbox.dsn; or, to move the lane on purpose, set mailbox.identity as said", "%s", fault.Text(err))
	case err != nil:
		return bad(Fail, "check mailbox.dsn, mailbox.table-in and -out, the server, and the network between", "%s", fault.Text(err))
	}
	v, err := s.Mailbox.Variables(ctx, "version", "read_only", "wait_timeout", "max_allowed_packet")
	if err != nil {
		return unread(err)
	}
	if s.Lane.Mode == live && v["read_only"] == "ON" {
		return bad(Warn, "point mailbox.dsn at the primary", "%s is read only: marks and requests wait", v["version"])
	}
	if n, err := strconv.Atoi(v["max_allowed_packet"]); err == nil && n < maxTextBytes {
		return bad(Warn, "raise max_allowed_packet to 16M or more", "%s takes packets of %d bytes only; a message may have 10 MiB", v["version"], n)
	}
	return well("%s", v["version"])
}

const maxTextBytes = 10 << 20

// futureAfter is how far a received time may lie ahead before it must be of another zone.
const futureAfter = 10 * time.Minute

func (s Subject) mbZone(ctx context.Context) Finding {
	var offset int
	if err := s.Mailbox.DB().QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())").Scan(&offset); err != nil {
		return unread(err)
	}
	zone, err := time.LoadLocation(s.Config.Mailbox.Zone)
	if err != nil {
		return unread(err)
	}
	if _, want := s.Now().In(zone).Zone(); (offset-want)*(offset-want) > 1 { // the two clocks are read one after the other
		return bad(Refuse, "connect to the server itself: something between does not pass session settings on",
			"the session is %+ds from UTC, %s %+ds", offset, s.Config.Mailbox.Zone, want)
	}
	ahead, err := s.newestAhead(ctx)
	if err != nil {
		return unread(err)
	}
	if ahead > futureAfter {
		return bad(Fail, "set mailbox.zone to the zone in which the mailbox's owner writes times", "the newest message was received %v in the future", ahead)
	}
	return well("%s", s.Config.Mailbox.Zone)
}

// newestAhead is how far in the future the newest row was received, if mailbox.zone is right.
func (s Subject) newestAhead(ctx context.Context) (time.Duration, error) {
	extent, _, err := s.Mailbox.Facts(ctx)
	if err != nil || extent.Max == 0 {
		return 0, err
	}
	rows, err := s.Mailbox.After(ctx, extent.Max-1, 1)
	if err != nil || len(rows) == 0 || rows[0].ReceivedAt.IsZero() {
		return 0, err
	}
	return rows[0].ReceivedAt.Sub(s.Now()).Round(time.Minute), nil
}

// columnsUsed are those we read or write, by table, with the rights that need them.
func columnsUsed() map[string][]string {
	return map[string][]string{
		"in": {
			"CMINMSGS_ID", "CMINMSGS_CLOB_MSG", "CMINMSGS_DATE_RECEIVED", "CMINMSGS_DATE_PROCESSED", "CMINMSGS_STATUS", "CMINMSGS_SUBSYSTEM_NAME",
			"CMINMSGS_SUBSYSTEM_SEQUENCE", "CMINMSGS_SUBSYSTEM_DATE_SENT", "CMINMSGS_SUBSYSTEM_SUBTYPE", "CMINMSGS_SUBSYSTEM_TYPE",
		},
		"out": {
			"COUTMSGS_ID", "COUTMSGS_CLOB_MSG", "COUTMSGS_DATE_INSERTED", "COUTMSGS_DATE_SENT", "ROUTINGID", "COUTMSGS_TRUEFALS_GROUP",
			"COUTMSGS_FINAL_GROUP_IND", "COUTMSGS_ACK_REQD", "COUTMSGS_ACK_RESEND_TIMES", "COUTMSGS_ENCRYPT", "COUTMSGS_ERROR",
		},
	}
}

func (s Subject) mbColumns(ctx context.Context) Finding {
	in, out, err := s.tables(ctx)
	if err != nil {
		return unread(err)
	}
	var missing []string
	for table, want := range map[string][]string{in: columnsUsed()["in"], out: columnsUsed()["out"]} {
		have, err := s.list(ctx, "SELECT UPPER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", table)
		if err != nil {
			return unread(err)
		}
		for _, column := range want {
			if !slices.Contains(have, column) {
				missing = append(missing, table+"."+column)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return bad(Fail, "ask the mailbox's owner for the columns, or for the right to see them", "missing: %s", strings.Join(missing, ", "))
	}
	text, err := s.list(ctx, "SELECT CONCAT(DATA_TYPE, ' ', COALESCE(CHARACTER_SET_NAME, '')) FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = 'CMINMSGS_CLOB_MSG'", in)
	if err != nil {
		return unread(err)
	}
	return well("%s and %s; texts are %s", in, out, strings.Join(text, ""))
}

func (s Subject) mbIndex(ctx context.Context) Finding {
	in, _, err := s.tables(ctx)
	if err != nil {
		return unread(err)
	}
	indexes, err := s.list(ctx, "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"+
		" AND UPPER(COLUMN_NAME) = 'CMINMSGS_ID' AND SEQ_IN_INDEX = 1", in)
	if err != nil {
		return unread(err)
	}
	if len(indexes) == 0 {
		return bad(Fail, "ask the mailbox's owner for a primary key", "no index begins with CMINMSGS_ID: each poll would read the whole table")
	}
	return well("%s", strings.Join(indexes, ", "))
}

// mbRights runs each kind of statement in a form that touches no row: only the server knows what roles, column rights and a
// read-only switch add up to.
func (s Subject) mbRights(ctx context.Context) Finding {
	in, out, err := s.tables(ctx)
	if err != nil {
		return unread(err)
	}
	needs := map[string]string{"SELECT on " + in: "SELECT CMINMSGS_ID FROM `" + in + "` WHERE 1 = 0"}
	if s.Lane.Mode == live {
		maps.Copy(needs, map[string]string{
			"UPDATE on " + in:  "UPDATE `" + in + "` SET CMINMSGS_DATE_PROCESSED = NULL, CMINMSGS_STATUS = NULL WHERE 1 = 0",
			"INSERT on " + in:  "INSERT INTO `" + in + "` (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) SELECT '', NULL, '' FROM `" + in + "` WHERE 1 = 0",
			"SELECT on " + out: "SELECT COUTMSGS_ID FROM `" + out + "` WHERE 1 = 0",
			"INSERT on " + out: "INSERT INTO `" + out + "` (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID) SELECT '', NOW(), '' FROM `" + out + "` WHERE 1 = 0",
		})
	}
	var missing []string
	for right, statement := range needs {
		if _, err := s.Mailbox.DB().ExecContext(ctx, statement); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", right, fault.Text(err)))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return bad(Fail, "ask the mailbox's owner for: SELECT, INSERT, UPDATE on the first table, SELECT, INSERT on the second", "refused: %s", strings.Join(missing, "; "))
	}
	return well("%s", strings.Join(slices.Sorted(maps.Keys(needs)), ", "))
}

func (s Subject) mbIDs(ctx context.Context) Finding {
	extent, step, err := s.Mailbox.Facts(ctx)
	if err != nil {
		return unread(err)
	}
	in, _, err := s.Lane.Store.Inbox(ctx, s.Pool, s.Lane.Name)
	if err != nil {
		return unread(err)
	}
	switch {
	case in.Cursor.W == 0 && in.SeededAt.IsZero() && s.Config.Pipeline.CutoverWatermark == "" && extent.Min > step:
		return bad(Warn, fmt.Sprintf("set pipeline.cutover-watermark=min to begin at %d at once, max to skip what is there, or an id", extent.Min),
			"ids %d to %d; those below will be waited for once, %v", extent.Min, extent.Max, s.Config.Pipeline.MaxCommitDelay)
	case extent.Max < in.Cursor.W:
		return bad(Warn, "ask the owner whether the table was cleaned or restored; docs/runbook.md, id regression",
			"the highest id is %d, the watermark %d", extent.Max, in.Cursor.W)
	}
	return well("%d to %d in steps of %d", extent.Min, extent.Max, step)
}

func (s Subject) mbClock(ctx context.Context) Finding {
	return s.clock(func() (time.Time, error) {
		var text string
		if err := s.Mailbox.DB().QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(3) AS CHAR)").Scan(&text); err != nil {
			return time.Time{}, err
		}
		return time.Parse("2006-01-02 15:04:05", text)
	})
}

func (s Subject) mbProbe(ctx context.Context) Finding {
	if !s.Config.Pipeline.HoleProbe {
		return well("off")
	}
	_, _, err := s.Mailbox.OldestTransaction(ctx)
	switch {
	case errors.Is(err, mailbox.ErrNoProcessRight):
		return bad(Refuse, "GRANT PROCESS to the user of mailbox.dsn, or leave pipeline.hole-probe off", "%s", fault.Text(err))
	case err != nil:
		return unread(err)
	}
	return well("may see transactions")
}

// tables gives the names as the server spells them.
func (s Subject) tables(ctx context.Context) (in, out string, err error) {
	if in, err = s.Mailbox.TableIn(ctx); err != nil {
		return "", "", err
	}
	out, err = s.Mailbox.TableOut(ctx)
	return in, out, err
}

// list gives the only column of a query.
func (s Subject) list(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := s.Mailbox.DB().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
