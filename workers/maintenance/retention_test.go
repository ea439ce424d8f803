package maintenance_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/workers/maintenance"
)

// What is older than its retention goes, what is a minute younger stays; counters do not fall with the rows they count.
func TestRetention(t *testing.T) {
	t.Parallel()
	r := setup(t)
	day := 24 * time.Hour
	c := maintenance.RetentionConfig{Archived: 90 * day, Swept: 400 * day, Records: 100 * day}
	for _, kept := range []struct {
		age  time.Duration
		rows string
	}{
		{c.Archived, `INSERT INTO proc_state_hst (msg_id, received_at, created_at, updated_at, archived_at) SELECT n, CASE WHEN n % 2 = 0 THEN $2::timestamptz END, $2, now(), now() FROM generate_series($1 + 1, $1 + 2) n`},
		{c.Archived, `INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, state, attempts, created_at, archived_at)
			VALUES ($1, 'KAFKA:msg', 1, 0, 1, '1', 'TOMBSTONE', 1, '', '', 'SENT', 0, $2, now())`},
		{c.Swept, `INSERT INTO flight_history (flid, operation_day, state_version, rule, doc, provenance, swept_at) VALUES ($1, '2026-01-01', 1, 'silent', '{}', '{}', $2)`},
		{c.Records, `INSERT INTO ops_audit (at, actor, peer, action, reason, scope, dry_run, result) SELECT $2, ($1::int)::text, '', '', '', '{}', false, '{}'`},
		{c.Records, `INSERT INTO req_track (kind, state, registered_at) SELECT 'RQRD-SLST', s, $2 FROM unnest(ARRAY['DONE', 'EXPIRED', CASE WHEN $1 = 0 THEN 'SENT' ELSE 'EXPIRED' END]) s`},
		{c.Records, `INSERT INTO ref_batch (id, rtype, source, mode, records, changed, removed, applied_at) SELECT n, 'SLST', 'AODB', 'COMPLETE', 1, 1, 0, $2 FROM generate_series($1 + 1, $1 + 3) n`},
		{90 * day, `INSERT INTO schd_snap_log (msg_id, kind, records, created, updated, unchanged, recv_at) VALUES ($1, 'SCHD-DNLD', 1, 1, 0, 0, $2)`},
	} {
		r.exec(kept.rows, 0, r.clock.Add(-kept.age-time.Minute))
		r.exec(kept.rows, 10, r.clock.Add(-kept.age+time.Minute))
	}
	r.exec(`INSERT INTO ref_set (rtype, batch_id) VALUES ('SLST', 1)`)
	r.exec(`INSERT INTO ref_master (rtype, rkey, doc, source, batch_id, refreshed_at) VALUES ('SLST', 'a', '{}', 'AODB', 2, now())`)
	expired, err := r.store.ExpiredRequests(t.Context(), r.pool)
	require.NoError(t, err)

	run := maintenance.Retention(c, r.pool, r.store, func() time.Time { return r.clock })
	require.Empty(t, cmp.Diff(map[string]int64{"archivedMessages": 2, "archivedEvents": 1, "sweptFlights": 1, "audit": 1, "requests": 2, "refBatches": 1}, all(t, run)))
	require.EqualValues(t, 1, all(t, maintenance.SnapLog(r.pool, r.store, func() time.Time { return r.clock }))["rows"])
	for table, left := range map[string]int64{
		"proc_state_hst": 2, "msg_event_hst": 1, "flight_history": 1, "ops_audit": 1, "req_track": 4, "ref_batch": 5, "schd_snap_log": 1,
	} {
		require.Equal(t, left, r.count("SELECT count(*) FROM "+table), table)
	}
	require.Equal(t, []string{"1", "2"}, r.list(`SELECT id::text FROM ref_batch WHERE id < 10 ORDER BY id`), "what readers see keeps its record")
	require.Zero(t, all(t, run)["requests"], "an open request is not over")

	still, err := r.store.ExpiredRequests(t.Context(), r.pool)
	require.NoError(t, err)
	require.Equal(t, expired, still, "msgx_requests_expired_total never falls")
}

// Every table has somebody who keeps it from growing for ever, and docs/operations.md says who.
func TestEveryTableHasItsKeeper(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../migrations/schema.sql")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	tables := regexp.MustCompile(`(?m)^CREATE TABLE public\.(\w+)`).FindAllStringSubmatch(string(schema), -1)
	require.NotEmpty(t, tables)
	for _, m := range tables {
		require.Regexp(t, "(?m)^\\|[^|]*`"+m[1]+"`[^|]*\\|[^|]+\\|[^|]+\\|", string(page), "%s is not in the table of what is kept", m[1])
	}
}
