package systemtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

// sync asks a pod for a schedule and gives what it answers; nothing when the pod dies of it.
func (p *pod) sync() string {
	p.t.Helper()
	body := strings.NewReader(`{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59"}`)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.address()+"/schd/sync", body)
	require.NoError(p.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return string(text)
}

// requests counts the rows of COUTMSGS.
func (w *world) requests(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, w.mailbox.QueryRowContext(t.Context(), "SELECT count(*) FROM coutmsgs").Scan(&n))
	return n
}

// A pod that dies between putting a request into the mailbox and knowing it leaves one request behind, not two: another one
// finds it, and its answer counts (design §9).
func TestRequestKilledInBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dying := w.start(t, "dying", "MSGX_FAULT_EXIT_SENT=1")
	dying.sync()
	require.Equal(t, 137, dying.exit(30*time.Second))
	require.Equal(t, 1, w.requests(t))
	require.Equal(t, "REGISTERED", w.text(t, "SELECT state FROM req_track"))

	w.start(t, "next")
	eventually(t, 30*time.Second, func() error {
		if s := w.text(t, "SELECT state || coalesce(coutmsgs_id, 0) FROM req_track"); s != "SENT1" {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	require.Equal(t, 1, w.requests(t))

	_, err := w.mailbox.ExecContext(t.Context(), "UPDATE coutmsgs SET COUTMSGS_DATE_SENT = UTC_TIMESTAMP() + INTERVAL 8 HOUR")
	require.NoError(t, err)
	eventually(t, 10*time.Second, func() error {
		if s := w.text(t, "SELECT state FROM req_track"); s != "WAITING" {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	now := time.Now().In(time.FixedZone("CST", 8*60*60)).Format("20060102150405")
	answer := func(seqn, flid int) string {
		text := strings.Replace(schedule(seqn, flid, 1), "<STYP>DNLD</STYP>", "<STYP>RESP</STYP>", 1)
		from, _, _ := strings.Cut(text, "</DTTM>")
		return strings.Replace(text, from[len(from)-len(now):], now, 1)
	}
	w.put(t, answer(410_001, 71))
	w.put(t, answer(410_002, 72))
	w.settled(t, 2, 30*time.Second)
	require.Equal(t, "DONE 1 inferred", w.text(t, "SELECT concat_ws(' ', state, resp_msg_id, match) FROM req_track"))
	require.Equal(t, "SUCCEEDED, SKIPPED unmatched-resp", w.text(t, "SELECT string_agg(concat_ws(' ', state, skip_reason), ', ' ORDER BY msg_id) FROM proc_state"))
	require.Equal(t, "71", w.text(t, "SELECT string_agg(flid::text, ',') FROM flight_schd"))
}

// A pod that waits for an answer looks up in time when another one is asked for something: wherever a request is registered,
// it is sent before its caller has lost patience.
func TestRequestThroughAnotherPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting := w.start(t, "waiting")
	require.Contains(t, waiting.sync(), `"is_success":true`)
	_, err := w.mailbox.ExecContext(t.Context(), "UPDATE coutmsgs SET COUTMSGS_DATE_SENT = UTC_TIMESTAMP() + INTERVAL 8 HOUR")
	require.NoError(t, err)
	eventually(t, 20*time.Second, func() error { // for so long that the pod has nothing to look at but the clock
		if s := w.text(t, "SELECT concat_ws(' ', state, now() - taken_at > interval '4 s') FROM req_track"); s != "WAITING t" {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	other := w.start(t, "other")
	require.Contains(t, other.sync(), `{"is_success":true,"body":2}`)
	require.Equal(t, "EXPIRED superseded, SENT", w.text(t, "SELECT string_agg(concat_ws(' ', state, reason), ', ' ORDER BY id) FROM req_track"))
}

// Without the mailbox /schd/sync says so after five seconds, and its request is over (contract §8.28); a shadow refuses.
func TestSyncWithoutMailbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	require.Contains(t, p.sync(), `{"is_success":true,"body":1}`)
	w.viaMailbox.set(true)
	require.Contains(t, p.sync(), "MAILBOX_UNAVAILABLE")
	require.Equal(t, "EXPIRED mailbox-unavailable", w.text(t, "SELECT concat_ws(' ', state, reason) FROM req_track ORDER BY id DESC LIMIT 1"))
	w.viaMailbox.set(false)
	shadow := w.start(t, "shadow", "MSGX_MODE=shadow", "MSGX_PG_DSN="+dbtest.DSN(t))
	require.Contains(t, shadow.sync(), "SHADOW_MODE")
	require.Equal(t, 1, w.requests(t))
}
