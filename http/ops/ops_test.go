package ops_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/ops"
	"msgexchange/jobs/message"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// filled is a database with a little of everything.
const filled = `
INSERT INTO inbox_cursor (lane, committed_up_to, stopped_reason, stopped_at, updated_at) VALUES ('default', 104, 'id-regression', '2026-11-30 01:00Z', '2026-11-30 00:00Z');
INSERT INTO inbox_hole (lane, first_id, last_id, first_seen_at, released_at) VALUES ('default', 105, 106, '2026-11-30 00:00Z', NULL), ('default', 90, 90, '2026-11-29 00:00Z', '2026-11-29 00:05Z');
INSERT INTO pipeline_lease (lane, role, epoch, holder, heartbeat_at) VALUES ('default', 'head', 3, 'pod-a', '2026-11-30 00:00Z');
INSERT INTO proc_state (msg_id, state, error_class, root_error_class, received_at, created_at, updated_at, finished_at, backfill_next_at, backfill_at, backfill_abandoned_at) VALUES
 (100, 'SUCCEEDED', NULL, NULL, '2026-11-30 00:00Z', '2026-11-30 00:00Z', '2026-11-30 00:00Z', '2026-11-30 00:00Z', NULL, '2026-11-30 00:01Z', NULL),
 (101, 'DEAD', 'EXHAUSTED', 'INFRA', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', NULL, NULL),
 (102, 'DEAD', 'MALFORMED', NULL, NULL, '2026-11-30 00:20Z', '2026-11-30 00:20Z', '2026-11-30 00:20Z', '2026-11-30 00:20Z', NULL, '2026-11-30 00:21Z'),
 (103, 'FAILED', 'INFRA', NULL, '2026-11-30 00:30Z', '2026-11-30 00:30Z', '2026-11-30 00:30Z', NULL, NULL, NULL, NULL),
 (104, 'PENDING', NULL, NULL, '2026-11-30 00:40Z', '2026-11-30 00:40Z', '2026-11-30 00:40Z', NULL, NULL, NULL, NULL);
UPDATE proc_state SET type = 'FLOP', styp = 'PSDT', late = true, last_error = 'load flights: Connection refused', backfill_error = 'locked' WHERE msg_id = 101;
INSERT INTO proc_state_hst (msg_id, generation, state, identity_reuse, sndr, type, styp, seqn, dttm, skip_reason, attempts, failures, created_at, updated_at, finished_at, archived_at) VALUES
 (9, 0, 'SKIPPED', 'content', 'AODB', 'FLOP', 'GTDT', 7, '2026-11-29 00:00Z', 'duplicate-of:8', 1, NULL, '2026-11-29 00:00Z', '2026-11-29 00:00Z', '2026-11-29 00:00Z', '2026-11-30 00:00Z');
INSERT INTO msg_identity (identity_key, msg_id, dttm, content_hash, bound_at) VALUES ('AODB|FLOP|GTDT|7', 8, '2026-11-28 23:00Z', '\x0a', '2026-11-28 23:00Z');
INSERT INTO flight_change (flid, msg_id, kind, change, state_version, dttm, before, fields, changed_at) VALUES
 (15, 100, 'FLOP-PSDT', 'UPDATE', 2, '2026-11-30 00:00Z', '{"abdg":null}', '{"abdg":"212"}', '2026-11-30 00:00Z'),
 (16, 100, 'FLOP-PSDT', NULL, 1, '2026-11-30 00:00Z', '{}', '{}', '2026-11-30 00:00Z'),
 (15, 9, 'FLOP-GTDT', 'UPDATE', 1, '2026-11-29 00:00Z', '{}', '{}', '2026-11-29 00:00Z');
INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload, state, attempts,
  kafka_partition, kafka_offset, created_at, sent_at, archived_at) VALUES
 (70, 'KAFKA:msg', 9, 0, 17, '17', 'UPSERT', 1, 'FLOP-GTDT', 'AODB', ('{"long":"' || repeat('x', 3000) || '"}')::json, 'SENT', 0, 3, 4711, '2026-11-29 00:00Z', '2026-11-29 00:00Z', '2026-11-30 00:00Z');
INSERT INTO msg_event (event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at) VALUES
 (1, 'KAFKA:msg', 100, 15, '15', 'UPSERT', 1, 'FLOP-PSDT', '{"flid":15}', 'SENT', '2026-11-30 00:00Z'),
 (2, 'KAFKA:schd', 100, 15, '15', 'TOMBSTONE', 1, 'FLOP-FDEL', NULL, 'PENDING', '2026-11-30 00:30Z'),
 (3, 'KAFKA:msg', 101, 16, '16', 'UPSERT', 1, 'FLOP-PSDT', '{"flid":16}', 'DEAD', '2026-11-30 00:00Z');
`

// at is an hour after the first row.
func at() time.Time { return time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC) }

func setup(t *testing.T) (*ops.API, *pgxpool.Pool) {
	t.Helper()
	pool := dbtest.New(t)
	_, err := pool.Exec(t.Context(), filled)
	require.NoError(t, err)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO msg_raw (msg_id, body, size_bytes, created_at) VALUES (101, $1, 6, '2026-11-30 00:00Z')`,
		enc.EncodeAll([]byte("<MSG/>"), nil))
	require.NoError(t, err)
	return &ops.API{
		Pool: pool, Store: store.New(time.UTC), Now: at, TextsKept: 7 * 24 * time.Hour, Replaying: ops.Replaying{Identity: message.IdentityDefaults()},
	}, pool
}

// get calls one handler and gives its answer, or its failure.
func get(t *testing.T, h func(*gin.Context) error, target string, params ...gin.Param) (map[string]any, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	c.Params = params
	if err := h(c); err != nil {
		return nil, err
	}
	require.Equal(t, http.StatusOK, rec.Code)
	var out map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &out))
	return out, nil
}

// ids are those of a list.
func ids(t *testing.T, answer map[string]any, name string) []int {
	t.Helper()
	out := []int{}
	for _, item := range answer["items"].([]any) {
		out = append(out, int(item.(map[string]any)[name].(float64)))
	}
	return out
}

func TestSummary(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	got, err := api.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.OpsBacklog{Unfinished: 2, Failed: 1, Dead: 2, HeadID: 103, OldestSeconds: 1800}, got.Messages)
	require.Equal(t, []store.OpsOutbox{{Target: "KAFKA:msg", Dead: 1}, {Target: "KAFKA:schd", Pending: 1, OldestSeconds: 1800}}, got.Events)
	require.Equal(t, store.OpsMarksBehind{Owed: 1, Abandoned: 1, OldestSeconds: 3000}, got.Marks)
	require.Equal(t, int64(1), got.Lanes[0].HolesOpen)
	require.Equal(t, "id-regression", *got.Lanes[0].StoppedReason)
	require.Equal(t, "pod-a", got.Leases[0].Holder)

	_, err = pool.Exec(t.Context(), `TRUNCATE inbox_cursor, inbox_hole, pipeline_lease, proc_state, msg_event`)
	require.NoError(t, err)
	answer, err := get(t, api.Summary, "/ops/summary")
	require.NoError(t, err)
	b, err := json.Marshal(answer)
	require.NoError(t, err)
	require.NotContains(t, string(b), "null", "an empty system has empty lists")
}
