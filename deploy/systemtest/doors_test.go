package systemtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

// A start that fails says why and what to do, and ends with 1.
func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for want, env := range map[string]string{
		"run migrate up": "MSGX_PG_DSN=" + dbtest.EmptyDSN(t),
		"postgres":       "MSGX_PG_DSN=postgres://nobody@127.0.0.1:1/none",
		"http.addr":      "MSGX_HTTP_ADDR=256.0.0.1:1",
		"ca-file":        "MSGX_KAFKA_TLS_CA_FILE=/no/such/file",
	} {
		extra := []string{env, "MSGX_KAFKA_TLS_ENABLED=true"}
		p := w.start(t, want, extra...)
		require.Equal(t, 1, p.exit(30*time.Second))
		require.Contains(t, p.log.String(), want)
		require.NotContains(t, p.log.String(), "panic")
	}
}

// The compat endpoint, through the real wiring: what it says is stored is processed, in its place.
func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	send := func(mediaType string, body []byte) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.address()+"/cminmsgs/send", bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", mediaType)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	status, body := send("text/xml", []byte(schedule(1, 1, 2)))
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"is_success":true,"body":1}`, body)
	status, body = send("application/xml; charset=UTF-8", []byte(flop(2, 1, "REMC", "行李")))
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"is_success":true,"body":2}`, body)
	status, body = send("text/xml", []byte("<MSG>"))
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "MALFORMED_XML")
	status, body = send("text/xml", bytes.Repeat([]byte(" "), 11<<20))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, body, "TOO_LARGE")

	w.settled(t, 2, 30*time.Second)
	status, body = get(t, p.address()+"/flights/1")
	require.Equal(t, http.StatusOK, status)
	var flight struct{ Flight struct{ Remc string } }
	require.NoError(t, json.Unmarshal([]byte(body), &flight))
	require.Equal(t, "行李", flight.Flight.Remc)
	status, body = get(t, p.address()+"/all/flights")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 2, strings.Count(body, `"flno"`))
	status, _ = get(t, p.address()+"/riverui/")
	require.Equal(t, http.StatusUnauthorized, status)
}

// A number that cannot be read is absent, never 0: while PostgreSQL is away, what only it knows is not shown (contract §6).
func TestNumbersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second)
	read := func() string { _, body := get(t, p.address()+"/metrics"); return body }
	// By its whole name: msgx_watermark_lag is what the last round saw, and is told for a minute.
	shown := func(body, name string) bool {
		return strings.Contains(body, "\n"+name+" ") || strings.Contains(body, "\n"+name+"{")
	}
	known := []string{
		"msgx_backlog_unfinished", "msgx_backlog_oldest_unprocessed_seconds", "msgx_watermark", "msgx_hole_open", "msgx_lease_epoch", "msgx_inbox_stopped",
		"msgx_events_pending", "msgx_events_oldest_seconds", "msgx_events_dead", "msgx_backfill_unmarked_terminal",
		"msgx_backfill_oldest_unmarked_seconds", "msgx_backfill_abandoned", "msgx_requests_open",
	}
	eventually(t, 30*time.Second, func() error { // a new lease has no epoch yet
		for _, name := range known {
			if body := read(); !shown(body, name) {
				return &notYet{name + " is not shown"}
			}
		}
		return nil
	})
	w.viaPG.set(true)
	eventually(t, 60*time.Second, func() error { // what was read a moment ago may be shown a moment longer
		body := read()
		for _, name := range known {
			if shown(body, name) {
				return &notYet{name + " is still shown"}
			}
		}
		return nil
	})
	require.Contains(t, read(), "\nmsgx_build_info{")
	w.viaPG.set(false)
	eventually(t, 60*time.Second, func() error {
		if !strings.Contains(read(), "\nmsgx_backlog_unfinished 0\n") {
			return &notYet{"not back"}
		}
		return nil
	})
}

// A PostgreSQL that hangs, connections open and silent: every door answers, a stop ends with 0 in time, and the next pod
// goes on.
func TestHangingPostgres(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a")
	w.put(t, schedule(1, 1, 3))
	w.settled(t, 1, 30*time.Second)
	address := p.address()
	thaw := w.viaPG.freeze(t)
	for _, path := range []string{"/flights/1", "/flights", "/all/flights", "/ops/summary"} {
		status, body := get(t, address+path)
		require.Equal(t, http.StatusServiceUnavailable, status, "%s: %s", path, body)
	}
	status, _ := get(t, address+"/metrics")
	require.Equal(t, http.StatusOK, status)
	eventually(t, 10*time.Second, func() error {
		if status, body := get(t, address+"/readyz"); status != http.StatusServiceUnavailable {
			return &stillReady{body}
		}
		return nil
	})
	w.put(t, flop(2, 1, "STND", "meanwhile"))
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.exit(30*time.Second), "shutdown-grace is 25 s")
	thaw()
	w.start(t, "b")
	w.settled(t, 2, 40*time.Second)
}

// stillReady says that a pod thinks nothing is wrong.
type stillReady struct{ body string }

func (s *stillReady) Error() string { return "still ready: " + s.body }

// In an outage of PostgreSQL nothing is an ERROR, which is what somebody must act on: River UI, which looks things up in the
// background and when it is asked, says it as River itself does.
func TestOutageIsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(t, "a", asOperator(t))
	url := p.address() + "/riverui/api/states"
	w.put(t, schedule(1, 1, 1))
	w.settled(t, 1, 30*time.Second) // it has started, all of it
	w.viaPG.set(true)
	eventually(t, time.Minute, func() error {
		// 500 when a connection breaks under it, 400 when it gets none.
		if status, body := getAs(t, url, operatorToken); status < http.StatusBadRequest {
			return fmt.Errorf("status %d: %s", status, body)
		}
		if log := p.Log.String(); !strings.Contains(log, `"text":"querycacher.`) && !strings.Contains(log, `"level":"ERROR"`) {
			return errors.New("River UI has not looked yet")
		}
		return nil
	})
	require.NotContains(t, p.Log.String(), `"level":"ERROR"`)
	w.viaPG.set(false)
}
