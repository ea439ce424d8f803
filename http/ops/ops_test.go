package ops_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/ops"
	"msgexchange/http/problem"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// filled is a database with a little of everything.
const filled = `
INSERT INTO inbox_cursor (lane, committed_up_to, stopped_reason, stopped_at, updated_at) VALUES ('default', 104, 'id-regression', '2026-11-30 01:00Z', '2026-11-30 00:00Z');
INSERT INTO inbox_hole (lane, first_id, last_id, first_seen_at) VALUES ('default', 105, 106, '2026-11-30 00:00Z');
INSERT INTO pipeline_lease (lane, role, epoch, holder, heartbeat_at) VALUES ('default', 'head', 3, 'pod-a', '2026-11-30 00:00Z');
INSERT INTO proc_state (msg_id, state, error_class, root_error_class, received_at, created_at, updated_at, finished_at, backfill_next_at, backfill_at, backfill_abandoned_at) VALUES
 (100, 'SUCCEEDED', NULL, NULL, '2026-11-30 00:00Z', '2026-11-30 00:00Z', '2026-11-30 00:00Z', '2026-11-30 00:00Z', NULL, '2026-11-30 00:01Z', NULL),
 (101, 'DEAD', 'EXHAUSTED', 'INFRA', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', '2026-11-30 00:10Z', NULL, NULL),
 (102, 'DEAD', 'MALFORMED', NULL, NULL, '2026-11-30 00:20Z', '2026-11-30 00:20Z', '2026-11-30 00:20Z', '2026-11-30 00:20Z', NULL, '2026-11-30 00:21Z'),
 (103, 'FAILED', 'INFRA', NULL, '2026-11-30 00:30Z', '2026-11-30 00:30Z', '2026-11-30 00:30Z', NULL, NULL, NULL, NULL),
 (104, 'PENDING', NULL, NULL, '2026-11-30 00:40Z', '2026-11-30 00:40Z', '2026-11-30 00:40Z', NULL, NULL, NULL, NULL);
INSERT INTO proc_state_hst (msg_id, generation, state, created_at, updated_at, finished_at, archived_at) VALUES
 (9, 0, 'SUCCEEDED', '2026-11-29 00:00Z', '2026-11-29 00:00Z', '2026-11-29 00:00Z', '2026-11-30 00:00Z');
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
	return &ops.API{Pool: pool, Store: store.New(time.UTC), Now: at}, pool
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

func TestMessages(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	for query, want := range map[string][]int{
		"":                                       {104, 103, 102, 101, 100},
		"state=DEAD":                             {102, 101},
		"class=INFRA":                            {103, 101}, // the class or the root class
		"class=malformed":                        {102},
		"state=SKIPPED":                          {},
		"from=2026-11-30T00:20:00Z":              {104, 103, 102}, // 102 has no received time: its creation counts
		"to=2026-11-30T08:10:00%2B08:00":         {100},
		"from=2026-11-30T00:10:00Z&state=FAILED": {103},
	} {
		got, err := get(t, api.Messages, "/ops/messages?"+query)
		require.NoError(t, err, query)
		require.Empty(t, cmp.Diff(want, ids(t, got, "msgId")), query)
	}
}

func TestMessages_pages(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	var seen []int
	after := ""
	for {
		got, err := get(t, api.Messages, "/ops/messages?limit=2&after="+url.QueryEscape(after))
		require.NoError(t, err)
		seen = append(seen, ids(t, got, "msgId")...)
		if got["next"] == nil {
			break
		}
		after = got["next"].(string)
	}
	require.Equal(t, []int{104, 103, 102, 101, 100}, seen)
}

func TestMessages_badParameters(t *testing.T) {
	t.Parallel()
	api := &ops.API{}
	for _, query := range []string{"state=LOST", "class=BAD", "limit=1001", "limit=x", "after=x", "from=today"} {
		_, err := get(t, api.Messages, "/ops/messages?"+query)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, query)
	}
	_, err := get(t, api.Message, "/ops/messages/x", gin.Param{Key: "id", Value: "x"})
	require.Equal(t, problem.BadRequest, problem.Of(err).Code)
}

func TestMessage(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	one := func(id int) (map[string]any, error) {
		return get(t, api.Message, fmt.Sprint("/ops/messages/", id), gin.Param{Key: "id", Value: fmt.Sprint(id)})
	}
	got, err := one(101)
	require.NoError(t, err)
	require.Equal(t, "DEAD", got["state"])
	require.Equal(t, "EXHAUSTED", got["errorClass"])
	require.Equal(t, "INFRA", got["rootErrorClass"])
	require.Equal(t, "OWED", got["markState"])
	require.Equal(t, "<MSG/>", got["text"])
	require.Equal(t, false, got["withheld"])
	require.Equal(t, false, got["archived"])
	for id, mark := range map[int]string{100: "WRITTEN", 102: "ABANDONED", 103: "NOT_DUE"} {
		got, err := one(id)
		require.NoError(t, err)
		require.Equal(t, mark, got["markState"], id)
		require.Nil(t, got["text"])
	}
	got, err = one(9)
	require.NoError(t, err)
	require.Equal(t, true, got["archived"])
	_, err = one(77)
	require.Equal(t, problem.NotFound, problem.Of(err).Code)
}

// A text about persons is an operator's, whether or not anybody could read it.
func TestMessage_persons(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	const text = `<MSG><META><TYPE>VIPL</TYPE></META><VIPL><VPCD>V1</VPCD><VLNM>Somebody</VLNM></VIPL>`
	_, err = pool.Exec(t.Context(), "UPDATE msg_raw SET body = $1, size_bytes = $2", enc.EncodeAll([]byte(text), nil), len(text))
	require.NoError(t, err)
	for role, want := range map[access.Role][]any{
		access.Reader: {nil, true}, access.Sender: {nil, true}, access.Operator: {text, false},
	} {
		rec := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(rec)
		c.Request = httptest.NewRequestWithContext(access.With(t.Context(), access.Caller{Role: role}), http.MethodGet, "/ops/messages/101", http.NoBody)
		c.Params = gin.Params{{Key: "id", Value: "101"}}
		require.NoError(t, api.Message(c))
		var got map[string]any
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &got))
		require.Equal(t, want, []any{got["text"], got["withheld"]}, role)
		require.Equal(t, want[1] == false, strings.Contains(rec.Body.String(), "Somebody"))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	for query, want := range map[string][]int{
		"": {3, 2, 1}, "target=KAFKA:msg": {3, 1}, "state=PENDING": {2}, "msgId=100": {2, 1}, "flid=16": {3}, "flid=17": {},
		"from=2026-11-30T00:01:00Z": {2}, "to=2026-11-30T00:01:00Z": {3, 1},
	} {
		got, err := get(t, api.Events, "/ops/events?"+query)
		require.NoError(t, err, query)
		require.Equal(t, want, ids(t, got, "eventId"), query)
	}
	got, err := get(t, api.Events, "/ops/events")
	require.NoError(t, err)
	items := got["items"].([]any)
	require.Equal(t, map[string]any{"flid": 16.0}, items[0].(map[string]any)["payload"])
	require.Nil(t, items[1].(map[string]any)["payload"], "a tombstone has none")
}

func TestSummary(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	got, err := api.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.OpsBacklog{Unfinished: 2, Failed: 1, HeadID: 103, OldestSeconds: 1800}, got.Messages)
	require.Equal(t, []store.OpsOutbox{{Target: "KAFKA:msg", Dead: 1}, {Target: "KAFKA:schd", Pending: 1, OldestSeconds: 1800}}, got.Events)
	require.Equal(t, store.OpsMarksBehind{Owed: 1, OldestSeconds: 3000}, got.Marks)
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
