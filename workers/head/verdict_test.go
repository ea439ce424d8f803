package head_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
	"msgexchange/workers/head"
)

// K08: the same message again, beside its first or later, is a duplicate of it.
func TestK08_duplicates(t *testing.T) {
	t.Parallel()
	r := setup(t)
	again := stand(2, 15, "2")
	r.put(schedule(1, 15, 1, ""), again, again)
	r.step()
	r.put(again, again)
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 SKIPPED duplicate-of:2 1x", "4 SKIPPED duplicate-of:2 1x", "5 SKIPPED duplicate-of:2 1x")
	require.Equal(t, []string{"15 stand 2 v2", "event 1 15 v1", "event 2 15 v2"}, r.effects())
	require.InDelta(t, 3, r.metric("msgx_duplicates_total", "duplicate"), 0)
	require.Equal(t, "2 0", r.one("SELECT concat_ws(' ', msg_id, rebinds) FROM msg_identity WHERE identity_key = 'AODB|FLOP|STND|2'"))
}

// An identity is bound once and kept by retries: a message is no duplicate of itself.
func TestIdentityIsKeptByRetries(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := envelope(1, "FLOP", "XXXX", "")
	r.put(text, text)
	r.finish()
	r.requireStates("1 DEAD EXHAUSTED/UNSUPPORTED 5x", "2 SKIPPED duplicate-of:1 1x")
}

// K26: an identity that comes with another body is a counter that restarted: told at once, and skipped or processed as the
// site says; half a day apart the counter has wrapped.
func TestK26_identityReuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy  string
		apart   time.Duration
		counted message.Reuse
		want    string // of the second message
		stand   string
	}{
		"skipped":   {message.OnReuseSkip, time.Minute, message.ReuseContent, "SKIPPED duplicate-of:2 1x", "208"},
		"processed": {message.OnReuseProcess, time.Minute, message.ReuseProcessed, "SUCCEEDED 1x", "209"},
		"at guard":  {message.OnReuseSkip, 12 * time.Hour, message.ReuseContent, "SKIPPED duplicate-of:2 1x", "208"},
		"wrapped":   {message.OnReuseSkip, 12*time.Hour + time.Second, message.ReuseWrapped, "SUCCEEDED 1x", "209"},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, one batch %t", name, together), func(t *testing.T) {
				t.Parallel()
				r := setup(t, func(site *head.Config) { site.Identity.OnReuse = c.policy })
				r.put(schedule(1, 15, 1, ""), stand(7, 15, "208"))
				if !together {
					r.finish()
				}
				r.put(made(dttm(7).Add(c.apart), 7, "FLOP", "STND", "<FLOP><FLID>15</FLID><STND>209</STND></FLOP>"))
				r.finish()
				r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 "+c.want)
				require.Equal(t, c.stand, r.one("SELECT stnd FROM flight_schd"))
				require.InDelta(t, 1, r.metric("msgx_duplicates_total", string(c.counted)), 0)
				require.Equal(t, string(c.counted), r.one("SELECT identity_reuse FROM proc_state WHERE msg_id = 3"))
				level := map[bool]string{true: "level=ERROR", false: "level=WARN"}[c.counted == message.ReuseContent]
				require.Contains(t, r.log.String(), level+` msg="message processed" msg_id=3`)
			})
		}
	}
}

// A text that we no longer have is the mailbox's; where that has none either, the message can never be tried.
func TestTextFromTheMailbox(t *testing.T) {
	t.Parallel()
	r := setup(t)
	text := schedule(1, 15, 1, "")
	r.put(text, stand(2, 15, "2"), stand(3, 15, "3"))
	r.forget(1, text)
	r.exec("DELETE FROM msg_raw WHERE msg_id = 2")
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD MALFORMED/MALFORMED 1x", "3 SUCCEEDED 1x")
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 2"), "raw-missing")
	require.Equal(t, []string{"15 stand 3 v2"}, r.flights())
}

// A text too large to be loaded, and the other ways in which a text is none (contract §8.17; dictionary 4, 1 to 4).
func TestMalformed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.putRows(inbox.Message{Oversize: true, Size: sis.MaxBytes + 1})
	for _, text := range []string{"", " ", "<MSG", "<MSG/>", "<MSG>\x00</MSG>", "<!DOCTYPE MSG><MSG/>", envelope(1, "FLOP", "STND", "")} {
		r.put(text)
	}
	r.step()
	for i, state := range r.states() {
		require.Contains(t, state, " DEAD MALFORMED/MALFORMED 1x", "message %d", i+1)
	}
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 1"), "at most 10485760")
	require.Equal(t, "AODB|FLOP|STND|1", r.one("SELECT identity_key FROM proc_state WHERE identity_key IS NOT NULL"), "META was sound")
	require.Equal(t, "8", r.one("SELECT count(backfill_next_at)::text FROM proc_state"))
}

// Ignored kinds are not looked at, whatever their body, and take no identity.
func TestIgnored(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(envelope(1, "LDM", "ABC", "<FLOP/>"), envelope(1, "ldm", "abc", "<FLOP/>"), envelope(2, "EROR", "SYST", ""))
	r.step()
	r.requireStates("1 SKIPPED ignored:LDM-* 1x", "2 SKIPPED ignored:LDM-* 1x", "3 SKIPPED ignored:EROR-* 1x")
	require.Equal(t, "0", r.one("SELECT count(*)::text FROM msg_identity"))
}

// A message that breaks a rule of the dictionary is refused whole; one about a flight we do not have changes nothing.
func TestRefusedWhole(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 2, ""), flop(2, 15, "ACFT", "<ACFT></ACFT>"), schedule(3, 15, 2, "<STND>1</STND><MAXP>x</MAXP>"), stand(4, 99, "1"))
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD PROTOCOL/PROTOCOL 1x", "3 DEAD PROTOCOL/PROTOCOL 1x", "4 SUCCEEDED 1x")
	require.Equal(t, []string{"15 v1", "16 v1"}, r.flights())

	r.put(strings.Replace(schedule(5, 15, 2, ""), "18MAR26", "19MAR26", 1))
	r.step()
	require.Equal(t, "PROTOCOL: decide: message 5: MSG/SCHD/FLTR[1]/SODT: flight 15 is of operation day 2026-03-18, SODT now falls on 2026-03-19",
		r.one("SELECT last_error FROM proc_state WHERE msg_id = 5"), "the place and the rule, once")
}
