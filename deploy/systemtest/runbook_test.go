package systemtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The scenarios of docs/runbook.md, each found, resolved and proved with the page alone.

func TestRunbookPoisonMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t), "MSGX_FAULT_INFRA_ON=1:5", "MSGX_PIPELINE_BACKOFF=20ms")
	b := w.open(t, p, "Poison message")
	w.put(t, schedule(1, 1, 1)) // the hook fails it, each of five times
	incident, sent := w.incident(t, "poison")
	b.msg = said(t, incident, `Row (\d+) is broken`)
	found := b.items(b.sees("get '/ops/messages?state=DEAD'", `"MALFORMED"(.|\n)*"INFRA"`))
	require.Len(t, found, 2)
	require.Equal(t, []string{b.msg, "MALFORMED"}, []string{found[0].text("msgId"), found[0].text("rootErrorClass")})
	require.Contains(t, found[0].text("lastError"), "the text ends inside the message")
	require.Empty(t, b.items(b.types("get '/ops/messages?error=no+such+stand'")))
	b.fault = "text+ends+inside"
	require.Len(t, b.items(b.types("get '/ops/messages?error=no+such+stand'")), 1)
	story := b.story(b.types("get /ops/messages/4711"))
	require.Len(t, story["attemptLog"], 1)
	text, _ := story["text"].(string)
	require.Contains(t, b.types("msgexchange decode -", text), `"outcome":"MALFORMED"`)
	sent()
	anew := said(t, incident, `Row (\d+) brings flight`)
	b.sees("get '/ops/messages?state=SUCCEEDED&limit=5'", `"msgId":`+anew+`\b`)

	p.kill() // our world is mended by a new version
	b.pod = w.start(t, "b", asOperator(t))
	b.msg = found[1].text("msgId")
	dry := b.types(`order /ops/replay '{"ids":[4711],"dryRun":true,"reason":"INC-1"}'`)
	require.Contains(t, dry, `"QUEUED"`)
	require.Contains(t, dry, `"would":[{"flid":1,"change":"CREATE"`)
	require.Contains(t, b.types("get /ops/messages/4711"), `"state":"DEAD"`)
	require.Contains(t, b.types(`order /ops/replay '{"ids":[4711],"reason":"INC-1"}'`), `"QUEUED"`)
	b.sees("get /ops/messages/4711", `"state":"SUCCEEDED"`)
}

func TestRunbookDeadEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t))
	b := w.open(t, p, "Dead event")
	incident, raised := w.incident(t, "dead-event")
	message := said(t, incident, `Row (\d+) gives flight`)
	dead := b.items(b.sees("get '/ops/events?state=DEAD&archived=false'", `"KAFKA:schd"(.|\n)*"KAFKA:msg"`))
	require.Len(t, dead, 2)
	for _, e := range dead {
		require.Equal(t, message, e.text("msgId"))
		require.Contains(t, e.text("lastError"), "too large")
	}
	require.Equal(t, 2, strings.Count(b.types("metric msgx_events_dead"), "} 1"))
	raised()
	b.event = dead[1].text("eventId")
	require.Contains(t, b.types(`order /ops/events/replay '{"eventIds":[99],"dryRun":true,"reason":"INC-2"}'`), `"QUEUED"`)
	require.Contains(t, b.types(`order /ops/events/replay '{"eventIds":[99],"reason":"INC-2"}'`), `"QUEUED"`)
	require.Contains(t, b.types(`order /ops/events/replay '{"target":"KAFKA:schd","reason":"INC-2"}'`), "the state of now")
	b.sees("get /ops/events/99", `"state":"SENT"`)
	b.sees("get '/ops/events?state=DEAD&archived=false'", `"items":\[\]`)
	b.sees("metric msgx_events_dead", `msg"} 0\n.*schd"} 0`)
	require.Len(t, w.read(t, "msg"), 2)
}

func TestRunbookStuckHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t), "MSGX_PIPELINE_BACKOFF=2s")
	b := w.open(t, p, "Stuck head")
	incident, _ := w.incident(t, "stuck-head")
	b.msg = said(t, incident, `Row (\d+) is of a kind`)
	behind := w.put(t, schedule(2, 1, 1))
	head := b.items(b.sees("get '/ops/messages?state=FAILED'", `"attempts":[2-4]`))
	require.Len(t, head, 1)
	require.Equal(t, b.msg, head[0].text("msgId"))
	require.Contains(t, head[0].text("lastError"), "is not in the catalogue")
	require.NotEqual(t, "null", head[0].text("nextAttemptAt"))
	require.Contains(t, b.types("get /readyz"), `"status":"ok"`)
	require.Contains(t, b.types("get '/ops/audit'"), `"items":[]`, "nobody has paused a queue")
	require.Regexp(t, `"role":"head","epoch":\d+,"holder":"[^"]+"`, b.types("get /ops/summary"))
	require.NotRegexp(t, `seconds 0$`, b.types("metric msgx_backlog_oldest_unprocessed_seconds"))
	b.sees("metric msgx_backlog_oldest_unprocessed_seconds", ` 0$`)
	require.Equal(t, "DEAD", w.text(t, "SELECT state FROM proc_state WHERE msg_id = $1::bigint", b.msg))
	require.Equal(t, "SUCCEEDED", w.text(t, "SELECT state FROM proc_state WHERE msg_id = $1", behind))

	// The way for a kind that is of no use: it is passed at once.
	p.kill()
	b.pod = w.start(t, "b", asOperator(t), "MSGX_IGNORE_RULES=FLOP-ZZZZ")
	incident, _ = w.incident(t, "stuck-head")
	id := said(t, incident, `Row (\d+) is of a kind`)
	eventually(t, 30*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM proc_state WHERE msg_id = $1::bigint AND skip_reason = 'ignored:FLOP-ZZZZ'", id); n != 1 {
			return &notYet{"not ignored"}
		}
		return nil
	})
}

func TestRunbookUnmarkedRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t))
	b := w.open(t, p, "Unmarked row", asOperator(t))
	incident, letGo := w.incident(t, "unmarked")
	b.msg = said(t, incident, `Row (\d+) is held`)
	failed := b.items(b.sees("get '/ops/messages?markFailed=true'", `somebody has locked the row`))
	require.Len(t, failed, 1)
	require.Equal(t, b.msg, failed[0].text("msgId"))
	require.Contains(t, b.types("get '/ops/messages?markState=OWED'"), `"msgId":`+b.msg)
	require.Contains(t, b.types("get /ops/messages/4711"), `"markState":"OWED"`)
	require.Regexp(t, `(?m)^ok +mailbox rights`, b.types("msgexchange doctor"))
	require.Contains(t, b.types("get /readyz"), `"status":"ok"`)
	letGo()
	require.Contains(t, b.types(`order /ops/backfill/resume '{"ids":[4711],"reason":"INC-3"}'`), `"QUEUED"`)
	b.sees("get /ops/messages/4711", `"markState":"WRITTEN"`)

	// A row that is gone when its mark comes, and is put back by its owner.
	tx, err := w.mailbox.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	id := w.put(t, schedule(7, 7, 1))
	var received string
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT CAST(CMINMSGS_DATE_RECEIVED AS CHAR) FROM cminmsgs WHERE CMINMSGS_ID = ? FOR UPDATE", id).Scan(&received))
	eventually(t, 20*time.Second, func() error {
		if n := w.number(t, "SELECT count(*) FROM proc_state WHERE msg_id = $1 AND state = 'SUCCEEDED'", id); n != 1 {
			return &notYet{"not finished"}
		}
		return nil
	})
	_, err = tx.ExecContext(t.Context(), "DELETE FROM cminmsgs WHERE CMINMSGS_ID = ? AND CMINMSGS_DATE_PROCESSED IS NULL", id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	gone := b.items(b.sees("get '/ops/messages?markState=ABANDONED&archived=false'", `"row-missing"`))
	require.Len(t, gone, 1)
	b.msg = gone[0].text("msgId")
	require.Equal(t, "msgx_backfill_abandoned 1", b.sees("metric msgx_backfill_abandoned", "1"))
	_, err = w.mailbox.ExecContext(t.Context(), "INSERT INTO cminmsgs (CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) VALUES (?, ?, ?)", id, schedule(7, 7, 1), received)
	require.NoError(t, err)
	require.Contains(t, b.types(`order /ops/backfill/resume '{"ids":[4711],"reason":"INC-3"}'`), `"QUEUED"`)
	b.sees("get /ops/messages/4711", `"markState":"WRITTEN"`)
	b.sees("metric msgx_backfill_abandoned", " 0$")
}

func TestRunbookHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t))
	b := w.open(t, p, "Hole")
	incident, commits := w.incident(t, "hole")
	missing := said(t, incident, `Row (\d+) is missing`)
	open := b.items(b.sees("get '/ops/holes?open=true'", `"firstId":`))
	require.Len(t, open, 1)
	require.Equal(t, []string{missing, missing}, []string{open[0].text("firstId"), open[0].text("lastId")})
	require.NotEqual(t, "null", open[0].text("firstSeenAt"))
	b.sees("metric msgx_watermark_lag", " 2$")
	require.Contains(t, b.types("metric msgx_hole_open"), "msgx_hole_open 1")
	before := b.types("metric msgx_watermark")
	commits()
	b.sees("get '/ops/holes?open=true'", `"items":\[\]`)
	b.sees("metric msgx_hole_open", " 0$")
	require.NotEqual(t, before, b.types("metric msgx_watermark"))
	w.settled(t, 3, 30*time.Second)
}

func TestRunbookLateRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.base = append(w.base, "MSGX_PIPELINE_MAX_COMMIT_DELAY=2s", "MSGX_PIPELINE_LATE_DETECT_PERIOD=1s")
	p := w.start(t, "a", asOperator(t))
	b := w.open(t, p, "Late row")
	incident, _ := w.incident(t, "late-row")
	b.msg = said(t, incident, `Row (\d+) is missing`)
	require.Zero(t, incident.exit(60*time.Second), incident.log.String())
	late := b.items(b.sees("get '/ops/messages?late=true'", `"late":true`))
	require.Len(t, late, 1)
	require.Equal(t, b.msg, late[0].text("msgId"))
	require.Contains(t, p.log.String(), `"msg":"late arrival"`)
	require.Contains(t, p.log.String(), `"msg":"hole passed"`)
	story := b.story(b.sees("get /ops/messages/4711", `"state":"SUCCEEDED"`))
	changes, _ := story["changes"].([]any)
	require.NotEmpty(t, changes)
	change, _ := changes[0].(map[string]any)
	b.flid = item(change).text("flid")
	require.Contains(t, b.types("get /flights/15/history"), "late by a transaction")
}

// airport runs one that answers.
func (w *world) airport(t *testing.T) {
	t.Helper()
	w.command(t, "airport", []string{"simulate", "--answer", "--duration", "10m", "--rate", "0.01", "--flights", "10"})
}

func TestRunbookExpiredRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.airport(t)
	p := w.start(t, "a", asOperator(t), "MSGX_REQUEST_TIMEOUT_RQRD=6s", "MSGX_REQUEST_TIMEOUT_RQFD=6s")
	b := w.open(t, p, "Expired request")
	incident, starts := w.incident(t, "expired-request")
	said(t, incident, "Nobody takes (requests)")
	again := `order /ops/requests '{"kind":"RQRD-SLST","reason":"INC-4"}'`
	require.Contains(t, b.types(again), `"REGISTERED"`)
	expired := b.items(b.sees("get '/ops/requests?state=EXPIRED'", `"RQRD-SLST"`))
	require.Equal(t, []string{"timeout", "null"}, []string{expired[0].text("reason"), expired[0].text("takenAt")}, "the transport did not take it")
	require.NotEqual(t, "null", expired[0].text("sentAt"))
	starts() // and answers what nobody waits for any more
	b.sees("get '/ops/messages?state=SKIPPED'", `"unmatched-resp"`)
	for _, order := range []string{again, `order /ops/requests '{"kind":"RQFD-NONE","startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59","reason":"INC-4"}'`} {
		id := b.story(b.types(order)).text("id")
		b.sees("get '/ops/requests?limit=5'", `"id":`+id+`,[^}]*"DONE"`)
	}
}

// newAdminAPI is the neighbour that serves reference data: one airline, and of everything else nothing.
func newAdminAPI(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[bool]string{true: `[{"itop":"CA","onam":"Air China"}]`, false: `[]`}[r.URL.Path == "/refdata/airl"]
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRunbookStaleReferenceList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.airport(t)
	neighbour := newAdminAPI(t)
	p := w.start(t, "a", asOperator(t), "MSGX_ADMIN_API_URL="+neighbour.URL)
	b := w.open(t, p, "Stale reference list")
	incident, _ := w.incident(t, "stale-list")
	said(t, incident, "Row (.*) brings the list DLYL")
	b.sees("metric msgx_refdata_age_seconds", `rtype="DLYL"} 1080\d\d`)
	require.Regexp(t, `"rtype":"DLYL","count":3,"source":"AODB"`, b.types("get /refdata"))

	// The page's list is SLST; here it is another one that is stale.
	require.Contains(t, b.types("get '/ops/requests?kind=RQRD-SLST'"), `"items":[]`)
	require.Contains(t, b.types(`order /ops/requests '{"kind":"RQRD-SLST","reason":"INC-5"}'`), `"REGISTERED"`)
	_, body := order(t, p.address()+"/ops/requests", `{"kind":"RQRD-DLYL","reason":"INC-5"}`)
	require.Contains(t, body, `"REGISTERED"`)
	b.sees("get /refdata", `"rtype":"SLST"`)
	b.sees("metric msgx_refdata_age_seconds", `rtype="DLYL"} \d\.`)
	require.Contains(t, b.types(`order /ops/maintenance/refdata '{"reason":"INC-5"}'`), `"jobId"`)
	b.sees("get /refdata", `"rtype":"AIRL","count":1,"source":"ADMINAPI"`)
}

// An order by a page's reader without the operator's token is refused, so the page asks for it first.
func TestRunbookNeedsTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	status, _ := order(t, p.address()+"/ops/replay", `{"ids":[1],"reason":"INC-1"}`)
	require.Equal(t, http.StatusUnauthorized, status)
}
