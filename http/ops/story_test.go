package ops_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"msgexchange/http/access"
	"msgexchange/http/ops"
	"msgexchange/http/problem"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

func story(t *testing.T, api *ops.API, id int) map[string]any {
	t.Helper()
	got, err := get(t, api.Message, fmt.Sprint("/ops/messages/", id), gin.Param{Key: "id", Value: fmt.Sprint(id)})
	require.NoError(t, err)
	return got
}

// first is the first of a list within a story.
func first(t *testing.T, story map[string]any, list string) map[string]any {
	t.Helper()
	require.NotEmpty(t, story[list], list)
	return story[list].([]any)[0].(map[string]any)
}

func TestMessage(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	_, err := pool.Exec(t.Context(), `
		UPDATE proc_state SET attempts = 5, failures = '[{"at":"2026-11-30T00:09:00Z","replay":0,"attempt":5,"state":"DEAD","class":"INFRA","error":"refused"}]' WHERE msg_id = 101;
		INSERT INTO river_job (kind, args, queue, max_attempts) VALUES ('backfill', '{}', 'backfill', 3), ('process_head', '{}', 'head', 3), ('flush_schd', '{}', 'schd', 3)`)
	require.NoError(t, err)
	dead := story(t, api, 101)
	require.Equal(t, "DEAD", dead["state"])
	require.Equal(t, "EXHAUSTED", dead["errorClass"])
	require.Equal(t, "INFRA", dead["rootErrorClass"])
	require.Equal(t, "OWED", dead["markState"])
	require.Equal(t, false, dead["archived"])
	require.Equal(t, "<MSG/>", dead["text"])
	require.Equal(t, "KEPT", dead["textState"])
	require.EqualValues(t, 6, dead["textBytes"])
	require.Equal(t, "2026-12-07T00:00:00Z", dead["textUntil"])
	require.Contains(t, outbox.Traceparent(message.Position{ID: 101}), fmt.Sprintf("-%s-", dead["traceId"]))
	require.EqualValues(t, 3, first(t, dead, "events")["eventId"])
	require.Equal(t, "backfill", first(t, dead, "jobs")["kind"])
	require.Len(t, dead["jobs"], 1)
	require.Len(t, dead["attemptLog"], 5)
	require.Equal(t, "INTERRUPTED", first(t, dead, "attemptLog")["result"])

	done := story(t, api, 100)
	require.Equal(t, "WRITTEN", done["markState"])
	require.Equal(t, map[string]any{"abdg": nil}, first(t, done, "changes")["before"])
	require.Equal(t, map[string]any{"abdg": "212"}, first(t, done, "changes")["fields"])
	require.EqualValues(t, 2, done["changeCount"])
	require.EqualValues(t, 2, done["eventCount"])
	require.Equal(t, "flush_schd", first(t, done, "jobs")["kind"], "its event on schd waits")

	require.Equal(t, "ABANDONED", story(t, api, 102)["markState"])
	failed := story(t, api, 103)
	require.Equal(t, "NOT_DUE", failed["markState"])
	require.Equal(t, "process_head", first(t, failed, "jobs")["kind"])
	require.Nil(t, failed["text"])
	require.Equal(t, "GONE", failed["textState"])

	_, err = get(t, api.Message, "/ops/messages/77", gin.Param{Key: "id", Value: "77"})
	require.Equal(t, problem.NotFound, problem.Of(err).Code)
}

// A message that has gone to the archive tells the same, also whose identity it came with.
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
		access.Reader: {nil, "WITHHELD"}, access.Sender: {nil, "WITHHELD"}, access.Operator: {text, "KEPT"},
	} {
		rec := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(rec)
		c.Request = httptest.NewRequestWithContext(access.With(t.Context(), access.Caller{Role: role}), http.MethodGet, "/ops/messages/101", http.NoBody)
		c.Params = gin.Params{{Key: "id", Value: "101"}}
		require.NoError(t, api.Message(c))
		var got map[string]any
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &got))
		require.Equal(t, want, []any{got["text"], got["textState"]}, role)
		require.Equal(t, role == access.Operator, strings.Contains(rec.Body.String(), "Somebody"))
	}
}

func TestMessage_archived(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO msg_raw (msg_id, body, size_bytes, created_at) VALUES (9, '', 11000000, '2026-11-29 00:00Z')`)
	require.NoError(t, err)
	got := story(t, api, 9)
	require.Equal(t, true, got["archived"])
	require.Equal(t, "TOO_LARGE", got["textState"])
	require.Nil(t, got["text"])
	require.EqualValues(t, 11_000_000, got["textBytes"])
	require.EqualValues(t, 8, got["identityOwner"].(map[string]any)["msgId"])
	require.EqualValues(t, 15, first(t, got, "changes")["flid"])
	require.EqualValues(t, 4711, first(t, got, "events")["kafkaOffset"])
	require.Equal(t, true, first(t, got, "events")["archived"])
	require.Equal(t, "SKIPPED", first(t, got, "attemptLog")["result"])
	require.Empty(t, got["jobs"])
}

// Ids that were given out again: the id alone is the newest message that has it, with its generation each of them.
func TestMessage_ofAnEarlierGeneration(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	_, err := pool.Exec(t.Context(), `
		UPDATE inbox_cursor SET generation = 2;
		UPDATE proc_state SET generation = 2;
		INSERT INTO proc_state_hst (msg_id, generation, state, created_at, updated_at, archived_at) VALUES (100, 0, 'DEAD', now(), now(), now()), (9, 1, 'DEAD', now(), now(), now())`)
	require.NoError(t, err)
	for path, want := range map[string]int{"100": 2, "2:100": 2, "0:100": 0, "9": 1, "1:9": 1, "0:9": 0} {
		got, err := get(t, api.Message, "/ops/messages/"+path, gin.Param{Key: "id", Value: path})
		require.NoError(t, err, path)
		require.EqualValues(t, want, got["generation"], path)
	}
	for path, want := range map[string]problem.Code{"1:100": problem.NotFound, "x:1": problem.BadRequest, "-1:1": problem.BadRequest, "1:": problem.BadRequest, "1:2:3": problem.BadRequest} {
		_, err := get(t, api.Message, "/ops/messages/"+path, gin.Param{Key: "id", Value: path})
		require.Equal(t, want, problem.Of(err).Code, path)
	}
}
