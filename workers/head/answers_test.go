package head_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/workers/head"
)

// asks puts a request of the kind on record, sent in the second in which message seqn of the tests is made.
func (r *rig) asks(kind string, state string, number, seqn int) {
	r.t.Helper()
	sent := dttm(seqn).Add(-8*time.Hour + 900*time.Millisecond)
	r.exec("INSERT INTO req_track (kind, state, seqn, registered_at, sent_at) VALUES ($1, $2, $3, $4, $4)", kind, state, number, sent)
}

// requests tells how the requests stand: "RQFD-NONE DONE by 2 inferred".
func (r *rig) requests() []string {
	r.t.Helper()
	return r.list(`SELECT concat_ws(' ', kind, state, 'by ' || resp_msg_id, match) FROM req_track ORDER BY id`)
}

func answer(seqn, flid int) string { return envelope(seqn, "SCHD", "RESP", schd(flid, 1, "")) }

// An answer counts once, when the request it answers was sent before it was made (design §9, contract §8.18, §8.28).
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*head.Config)
		sent     bool
		want     []string
		requests []string
		flights  []string
	}{
		"nobody asked": {
			func(*head.Config) {}, false,
			[]string{"1 SKIPPED unmatched-resp 1x", "2 SKIPPED unmatched-resp 1x", "3 SKIPPED unmatched-resp 1x"},
			[]string{},
			[]string{},
		},
		"one is late, one comes twice": {
			func(*head.Config) {}, true,
			[]string{"1 SKIPPED unmatched-resp 1x", "2 SUCCEEDED 1x", "3 SKIPPED unmatched-resp 1x"},
			[]string{"RQFD-NONE DONE by 2 inferred"},
			[]string{"16 v1"},
		},
		"one by one": {
			func(c *head.Config) { c.Batch = 1 }, true,
			[]string{"1 SKIPPED unmatched-resp 1x", "2 SUCCEEDED 1x", "3 SKIPPED unmatched-resp 1x"},
			[]string{"RQFD-NONE DONE by 2 inferred"},
			[]string{"16 v1"},
		},
		"shadow": {
			func(c *head.Config) { c.Shadow = true }, false,
			[]string{"1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 SUCCEEDED 1x"},
			[]string{"RQFD-NONE DONE by 1 shadow", "RQFD-NONE DONE by 2 shadow", "RQFD-NONE DONE by 3 shadow"},
			[]string{"15 v1", "16 v1", "17 v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, c.change)
			if c.sent {
				r.asks("RQFD-NONE", "WAITING", 7, 20)
			}
			r.put(answer(19, 15), answer(20, 16), answer(21, 17))
			r.finish()
			r.requireStates(c.want...)
			require.Equal(t, c.requests, r.requests())
			require.Equal(t, c.flights, r.flights())
			unmatched := 0
			for _, s := range c.want {
				if s[2:9] == "SKIPPED" {
					unmatched++
				}
			}
			require.InDelta(t, unmatched, r.metric("msgx_answers_unmatched_total", "SCHD-RESP"), 0)
		})
	}
}

// Our number in an answer makes it exact; that of a closed request makes it late.
func TestAnswersByNumber(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.asks("RQFD-NONE", "EXPIRED", 30, 5)
	r.asks("RQFD-NONE", "SENT", 31, 20)
	r.put(answer(30, 15), answer(31, 16))
	r.finish()
	r.requireStates("1 SKIPPED unmatched-resp 1x", "2 SUCCEEDED 1x")
	require.Equal(t, []string{"RQFD-NONE EXPIRED", "RQFD-NONE DONE by 2 exact"}, r.requests())
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 1"), "it answers a request that is closed")
}

// An answer that is refused leaves its request open: the right one may still come.
func TestAnswerRefused(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.asks("RQFD-NONE", "WAITING", 7, 20)
	r.put(envelope(21, "SCHD", "RESP", schd(15, 2, "<MAXP>x</MAXP>")), answer(22, 16))
	r.finish()
	r.requireStates("1 DEAD PROTOCOL/PROTOCOL 1x", "2 SUCCEEDED 1x")
	require.Equal(t, []string{"RQFD-NONE DONE by 2 inferred"}, r.requests())
}

// An answer that is put back after its request is over changes nothing, neither flights nor lists, though it was never applied
// and though another request of its kind is open by then (contract §8.28).
func TestAnswerPutBack(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.asks("RQFD-NONE", "WAITING", 7, 20)
	r.asks("RQRD-ABDG", "WAITING", 8, 20)
	r.put(answer(21, 15), bridgeList(22, "RESP", "B1 1"))
	r.exec("ALTER TABLE msg_event ADD CONSTRAINT refuse CHECK (flid <> 15)")
	r.exec("ALTER TABLE ref_master ADD CONSTRAINT refuse CHECK (rkey <> 'B1')")
	r.finish()
	r.requireStates("1 DEAD EXHAUSTED/INFRA 5x", "2 DEAD EXHAUSTED/INFRA 5x")
	require.Equal(t, []string{"RQFD-NONE WAITING", "RQRD-ABDG WAITING"}, r.requests(), "they stay open until they expire")
	r.exec("ALTER TABLE msg_event DROP CONSTRAINT refuse")
	r.exec("ALTER TABLE ref_master DROP CONSTRAINT refuse")

	r.exec("UPDATE req_track SET state = 'EXPIRED'")
	r.asks("RQFD-NONE", "WAITING", 9, 30)
	again := "UPDATE proc_state SET state = 'PENDING', attempts = 0, error_class = NULL, root_error_class = NULL, finished_at = NULL, next_attempt_at = NULL, processing_started_at = NULL, backfill_next_at = NULL"
	r.exec(again)
	r.finish()
	r.requireStates("1 SKIPPED unmatched-resp 1x", "2 SKIPPED unmatched-resp 1x")
	require.Empty(t, r.effects())
	require.Empty(t, r.bridges())
	require.Equal(t, []string{"RQFD-NONE EXPIRED", "RQRD-ABDG EXPIRED", "RQFD-NONE WAITING"}, r.requests())
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 1"), "made before the open request was sent")
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 2"), "no request of its kind is open")
}

// DONE commits with the data it brought, or neither does (design §9).
func TestDoneWithItsData(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"the data is refused":    "ALTER TABLE msg_event ADD CONSTRAINT refuse CHECK (flid <> 15)",
		"the request is refused": "ALTER TABLE req_track ADD CONSTRAINT refuse CHECK (state <> 'DONE')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.asks("RQFD-NONE", "WAITING", 7, 20)
			r.exec(ddl)
			r.put(answer(21, 15))
			r.step()
			r.requireStates("1 FAILED INFRA/INFRA 1x")
			require.Equal(t, []string{"RQFD-NONE WAITING"}, r.requests())
			require.Empty(t, r.effects())
			for _, table := range []string{"msg_event", "req_track"} {
				r.exec(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS refuse", table))
			}
			r.finish()
			r.requireStates("1 SUCCEEDED 2x")
			require.Equal(t, []string{"RQFD-NONE DONE by 1 inferred"}, r.requests())
			require.Equal(t, []string{"15 v1", "event 1 15 v1"}, r.effects())
		})
	}
}

// An answer that overtakes our note that the request was sent counts all the same.
func TestAnswerOvertakes(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.asks("RQFD-NONE", "REGISTERED", 7, 20)
	r.exec("UPDATE req_track SET sending_at = sent_at, sent_at = NULL")
	r.put(answer(20, 15))
	r.finish()
	r.requireStates("1 SUCCEEDED 1x")
	require.Equal(t, "true", r.one("SELECT (sent_at = sending_at)::text FROM req_track"))
}
