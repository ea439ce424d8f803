package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

// Messages, dead events and marks given up are put back from the command line too, with the answer and the audit of HTTP.
func TestReplay(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO inbox_cursor (lane, committed_up_to, updated_at) VALUES ('default', 9, now());
		INSERT INTO proc_state (msg_id, state, error_class, root_error_class, created_at, updated_at, finished_at, backfill_abandoned_at, backfill_abandoned_reason, backfill_next_at) VALUES
			(1, 'DEAD', 'EXHAUSTED', 'INFRA', now(), now(), now(), NULL, NULL, NULL), (2, 'DEAD', 'MALFORMED', 'MALFORMED', now(), now(), now(), NULL, NULL, NULL),
			(3, 'SUCCEEDED', NULL, NULL, now(), now(), now(), now(), 'row-missing', now());
		INSERT INTO msg_raw (msg_id, body, size_bytes, created_at) VALUES (1, '', 1, now());
		INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
			VALUES (7, 'KAFKA:msg', 3, 15, '15', 'UPSERT', 1, 'FLOP-PSDT', '{}', 'DEAD', now()), (8, 'KAFKA:msg', 3, 15, '15', 'UPSERT', 1, 'FLOP-PSDT', '{}', 'SENT', now())`)
	require.NoError(t, err)
	environ := []string{"MSGX_PG_DSN=" + pool.Config().ConnString(), "MSGX_MAILBOX_DSN=me@tcp(127.0.0.1:1)/away?timeout=1s"}
	for _, c := range []struct {
		args []string
		code int
		want map[int64]string
	}{
		{[]string{"--ids", "1,2,99", "--dry-run"}, 0, map[int64]string{1: "QUEUED", 2: "SKIPPED", 99: "NOT_FOUND"}},
		{[]string{"--ids", "1"}, 0, map[int64]string{1: "QUEUED"}},
		{[]string{"--ids", "2"}, 1, map[int64]string{2: "SKIPPED"}},
		{[]string{"--class", "INFRA"}, 1, map[int64]string{}},
		{[]string{"--events", "7,8"}, 0, map[int64]string{7: "QUEUED", 8: "SKIPPED"}},
		{[]string{"--target", "KAFKA:msg"}, 1, map[int64]string{}},
		{[]string{"--marks", "3,99"}, 0, map[int64]string{3: "QUEUED", 99: "NOT_FOUND"}},
		{[]string{"--marks", "1"}, 1, map[int64]string{1: "SKIPPED"}},
	} {
		got := program(t, environ, "", append([]string{"replay", "--reason", "INC-7"}, c.args...)...)
		require.Equal(t, c.code, got.code, "%v: %s%s", c.args, got.out, got.errors)
		var answer struct {
			Items []struct {
				ID     int64
				Result string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &answer), c.args)
		results := map[int64]string{}
		for _, i := range answer.Items {
			results[i.ID] = i.Result
		}
		require.Equal(t, c.want, results, c.args)
	}
	for _, args := range [][]string{{}, {"--ids", "1", "--marks", "3"}, {"--target", "KAFKA:x"}, {"--class", "NONE"}} {
		require.Equal(t, 2, program(t, environ, "", append([]string{"replay", "--reason", "INC-7"}, args...)...).code, args)
	}
	require.Equal(t, 1, program(t, environ, "", "replay", "--reason", "INC-7", "--class", "infra", "--from", "2026-11-30T08:00:00+08:00").code, "nothing of it is left")
	got := program(t, environ, "", "replay", "--reason", "INC-7", "--class", "INFRA", "--from", "yesterday")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.errors, `"yesterday" is no time like 2026-11-30T08:00:00+08:00`)
	var rows, named int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE actor LIKE 'cli:%' AND reason = 'INC-7') FROM ops_audit`).Scan(&rows, &named))
	require.Positive(t, rows)
	require.Equal(t, rows, named)
}
