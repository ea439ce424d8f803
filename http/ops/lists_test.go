package ops_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/http/ops"
	"msgexchange/http/problem"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	for query, want := range map[string][]int{
		"":                                       {104, 103, 102, 101, 100, 9}, // 9 is archived
		"state=DEAD":                             {102, 101},
		"class=INFRA":                            {103, 101}, // the class or the root class
		"class=malformed":                        {102},
		"class=EXHAUSTED":                        {101},
		"state=SKIPPED":                          {9},
		"from=2026-11-30T00:20:00Z":              {104, 103, 102}, // 102 has no received time: its creation counts
		"to=2026-11-30T08:10:00%2B08:00":         {100, 9},
		"from=2026-11-30T00:10:00Z&state=FAILED": {103},
		"type=flop":                              {101, 9},
		"type=FLOP&styp=PSDT":                    {101},
		"styp=GTDT":                              {9},
		"error=CONNECTION":                       {101},
		"error=connect%25":                       {}, // text, no pattern
		"identityReuse=content":                  {9},
		"late=true":                              {101},
		"archived=true":                          {9},
		"archived=false&flid=15":                 {100},
		"late=false":                             {104, 103, 102, 101, 100, 9},
		"markState=OWED":                         {101},
		"markState=ABANDONED":                    {102},
		"markFailed=true":                        {101},
		"flid=15":                                {100, 9},
		"flid=16":                                {100},
		"flid=17":                                {},
		"flid=15&state=SUCCEEDED":                {100},
	} {
		got, err := get(t, api.Messages, "/ops/messages?"+query)
		require.NoError(t, err, query)
		require.Empty(t, cmp.Diff(want, ids(t, got, "msgId")), query)
	}
	_, err := pool.Exec(t.Context(), "UPDATE proc_state SET backfill_error = NULL WHERE msg_id = 101")
	require.NoError(t, err)
	got, err := get(t, api.Messages, "/ops/messages?markFailed=true")
	require.NoError(t, err)
	require.Empty(t, ids(t, got, "msgId"), "its mark is only on its way")
}

// Each list read a row at a time is the list read at once: no row twice, none left out, working table and archive together.
func TestLists_pages(t *testing.T) {
	t.Parallel()
	api, pool := setup(t)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO proc_state_hst (msg_id, generation, state, created_at, updated_at, archived_at) VALUES (100, 3, 'DEAD', '2026-11-30 00:00Z', now(), now());
		INSERT INTO req_track (kind, state, registered_at) SELECT 'RQRD-SLST', 'DONE', '2026-11-30 00:00Z' FROM generate_series(1, 3);
		INSERT INTO ops_audit (at, actor, action) SELECT '2026-11-30 00:00Z', 'olga', 'replay' FROM generate_series(1, 3)`)
	require.NoError(t, err)
	message := gin.Param{Key: "id", Value: "9"}
	for name, l := range map[string]struct {
		h    func(*gin.Context) error
		key  string
		want int
	}{
		"messages": {api.Messages, "msgId", 7}, "events": {api.Events, "eventId", 4}, "holes": {api.Holes, "firstId", 2},
		"requests": {api.Requests, "id", 3}, "audit": {api.Audit, "id", 3}, "messages/9/changes": {api.MessageChanges, "flid", 1},
	} {
		whole, err := get(t, l.h, "/ops/"+name, message)
		require.NoError(t, err, name)
		require.Len(t, whole["items"], l.want, name)
		var seen []any
		for after, more := "", true; more; {
			got, err := get(t, l.h, "/ops/"+name+"?limit=1&after="+url.QueryEscape(after), message)
			require.NoError(t, err, name)
			require.Len(t, got["items"], 1, name)
			seen = append(seen, got["items"].([]any)...)
			after, more = got["next"].(string)
		}
		require.Empty(t, cmp.Diff(whole["items"], seen), name)
	}
}

func TestMessages_badParameters(t *testing.T) {
	t.Parallel()
	api := &ops.API{}
	for _, query := range []string{
		"state=LOST", "class=BAD", "limit=1001", "limit=x", "after=x", "from=today", "flid=x", "late=perhaps", "identityReuse=odd", "markState=WRITTEN",
		"stat=DEAD", "error=" + strings.Repeat("x", 201), "after=MS4y",
	} {
		_, err := get(t, api.Messages, "/ops/messages?"+query)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, query)
	}
	for _, h := range []func(*gin.Context) error{api.Message, api.MessageChanges, api.Event} {
		_, err := get(t, h, "/ops/messages/x", gin.Param{Key: "id", Value: "x"})
		require.Equal(t, problem.BadRequest, problem.Of(err).Code)
	}
	_, err := get(t, api.Messages, "/ops/messages?stat=DEAD")
	require.ErrorContains(t, err, "stat is not known here; there are after, archived, class")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	for query, want := range map[string][]int{
		"": {2, 3, 1, 70}, "target=KAFKA:msg": {3, 1, 70}, "state=PENDING": {2}, "state=SENT": {1, 70}, "msgId=100": {2, 1}, "msgId=9": {70}, "archived=true": {70}, "archived=false&flid=15": {2, 1}, "flid=16": {3}, "flid=18": {},
		"from=2026-11-30T00:01:00Z": {2}, "to=2026-11-30T00:01:00Z": {3, 1, 70},
	} {
		got, err := get(t, api.Events, "/ops/events?"+query)
		require.NoError(t, err, query)
		require.Equal(t, want, ids(t, got, "eventId"), query)
	}
}

// A page never holds whole schedules: a large payload is left out of a list, and shown with its event.
func TestEvents_payloads(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	got, err := get(t, api.Events, "/ops/events")
	require.NoError(t, err)
	items := got["items"].([]any)
	event := func(i int) map[string]any { return items[i].(map[string]any) }
	require.Nil(t, event(0)["payload"], "a tombstone has none")
	require.EqualValues(t, 0, event(0)["payloadBytes"])
	require.Equal(t, map[string]any{"flid": 16.0}, event(1)["payload"])
	require.Nil(t, event(3)["payload"])
	require.EqualValues(t, 3011, event(3)["payloadBytes"])
	require.Equal(t, true, event(3)["archived"])

	one := func(id int) (map[string]any, error) {
		return get(t, api.Event, fmt.Sprint("/ops/events/", id), gin.Param{Key: "id", Value: fmt.Sprint(id)})
	}
	whole, err := one(70)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"long": strings.Repeat("x", 3000)}, whole["payload"])
	require.EqualValues(t, 4711, whole["kafkaOffset"])
	whole, err = one(3)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"flid": 16.0}, whole["payload"])
	_, err = one(77)
	require.Equal(t, problem.NotFound, problem.Of(err).Code)
}

func TestHoles(t *testing.T) {
	t.Parallel()
	api, _ := setup(t)
	for query, want := range map[string][]int{"": {105, 90}, "open=true": {105}, "open=false": {90}} {
		got, err := get(t, api.Holes, "/ops/holes?"+query)
		require.NoError(t, err, query)
		require.Equal(t, want, ids(t, got, "firstId"), query)
	}
}
