package flight_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
)

// step is one message about the flight of a row, and what the dictionary says that it does. A time "@1030" is 10:30 of the
// flight's day, on the wire and in JSON.
type step struct {
	what string
	body string
	want string // the fields of its event; refused, nothing or deleted
}

// What a step may end in but a change.
const (
	refused = "!"
	nothing = "-"
	deleted = "DELETE"
)

// row is a sub type and messages of it, one after the other, about a flight that has what every flight has.
type row struct {
	styp   string
	stands []string // it has at first
	steps  []step
}

// TestRows walks the dictionary's section 7: what each sub type does when its payload is there, absent, empty, and when one
// of its rules is broken. Every face of a message is held against the step: state, msg event, schd event, terminal state.
// After each step the same comes again, and about a flight we do not have: that changes nothing.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, r := range allRows() {
		t.Run(r.styp, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			at := w.fltr(t, 7, "CA4907", "18 11:40", nil)
			at.Lists["psdt"] = sis.List{Clear: true, Entries: psdt(r.stands...)}
			w.must(t, 1, "SCHD-DNLD", at)
			id := int64(1)
			for _, s := range r.steps {
				id += 3
				w.check(t, id, flopText(r.styp, 7, s.body), s)
				if s.want == refused {
					continue
				}
				w.check(t, id+1, flopText(r.styp, 7, s.body), step{s.what + ", again", s.body, nothing})
				m, err := w.read(flopText(r.styp, 999, s.body))
				require.NoError(t, err)
				require.Empty(t, w.must(t, id+2, string(m.Meta.Kind()), m.Records...).Changes, "%s, of an unknown flight", s.what)
			}
		})
	}
}

// TestRowsAreComplete: every sub type of the catalogue has a row, and every row a step for each column: filled, absent, empty,
// and something that is refused.
func TestRowsAreComplete(t *testing.T) {
	t.Parallel()
	rows := map[string]row{}
	for _, r := range allRows() {
		require.NotContains(t, rows, r.styp)
		rows[r.styp] = r
	}
	for k := range sis.Catalogue() {
		if k.TYPE != sis.TypeFLOP {
			continue
		}
		r, found := rows[k.STYP]
		require.True(t, found, "%s has no row", k.Name)
		delete(rows, k.STYP)
		seen := map[string]bool{}
		for _, s := range r.steps {
			what, _, _ := strings.Cut(s.what, ":")
			seen[what] = true
			seen["broken"] = seen["broken"] || s.want == refused
			seen["clears"] = seen["clears"] || strings.Contains(s.want, "null") || strings.Contains(s.what, "clears") || s.want == deleted
			seen["changes"] = seen["changes"] || s.want != refused && s.want != nothing
		}
		want := []string{"filled", "absent", "empty", "broken", "changes", "clears"}
		if p := k.Payload[0]; k.Mode == sis.Set && p.Empty == sis.Refuse && !p.Door {
			want = want[:5] // a flight always has one
		}
		if k.Payload[0].Lenient {
			want = want[:5] // there is no way to take an entry out
		}
		for _, what := range want {
			require.True(t, seen[what], "%s: no step %q", k.Name, what)
		}
	}
	require.Empty(t, rows)
}

// TestScheduleRows walks the dictionary's section 5 for each kind of schedule in the same way.
func TestScheduleRows(t *testing.T) {
	t.Parallel()
	for k := range sis.Catalogue() {
		if k.TYPE != sis.TypeSCHD {
			continue
		}
		t.Run(k.STYP, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			m, err := w.read(schdText(k.STYP, "<FLTR>BASE</FLTR>"))
			require.NoError(t, err)
			require.Equal(t, [][4]any{{int64(7), flight.Create, int64(1), int64(0)}}, told(w.must(t, 1, string(k.Name), m.Records...)), "unknown")
			id := int64(1)
			for _, s := range scheduleSteps() {
				id += 2
				w.check(t, id, schdText(k.STYP, s.body), s)
				if s.want != refused {
					w.check(t, id+1, schdText(k.STYP, s.body), step{s.what + ", again", s.body, nothing})
				}
			}
		})
	}
}

// wireTimes writes the times of a body as they are on the wire.
func wireTimes(body string) string {
	return regexp.MustCompile(`@(\d{4})`).ReplaceAllString(body, "18MAR26$1")
}

func envelope(typ, styp, body string) string {
	return fmt.Sprintf(`<MSG><META><SNDR>AODB</SNDR><SEQN>1</SEQN><DTTM>20260318090000</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		typ, styp, wireTimes(body))
}

func flopText(styp string, flid int, body string) string {
	return envelope("FLOP", styp, fmt.Sprintf(`<FLOP><FLID>%d</FLID>%s</FLOP>`, flid, body))
}

// schdText counts the records unless the body does. BASE is what every record has.
func schdText(styp, body string) string {
	if !strings.Contains(body, "<RECS>") {
		body = fmt.Sprintf("<RECS>%d</RECS>%s", strings.Count(body, "<FLTR>"), body)
	}
	return envelope("SCHD", styp, "<SCHD>"+strings.ReplaceAll(body, "BASE", mandatory("", ""))+"</SCHD>")
}

// read decodes a message.
func (w *world) read(text string) (sis.Message, error) {
	return sis.Decode([]byte(text), sis.Options{Zone: w.opt.Zone})
}

func (w *world) check(t *testing.T, id int64, text string, s step) {
	t.Helper()
	before, version := w.show(t, 7), w.Flight(7).Version
	m, err := w.read(text)
	var o flight.Outcome
	if err == nil {
		o, err = w.decide(id, m)
	}
	if s.want == refused {
		require.Error(t, err, s.what)
		require.Equal(t, retry.Verdict{State: message.Dead, Class: fault.Protocol, Root: fault.Protocol}, retry.Defaults().Failed(fault.Of(err), 1, at(id), at(id)), s.what)
		require.Contains(t, err.Error(), "MSG/"+m.Meta.TYPE, s.what)
		require.Equal(t, before, w.show(t, 7), s.what)
		return
	}
	require.NoError(t, err, s.what)
	events := outbox.Build(outbox.Cause{Pos: pos(id), Meta: m.Meta, ReceivedAt: time.Time{}}, o, outbox.Options{Zone: w.opt.Zone})
	if s.want == nothing {
		require.Empty(t, events, s.what)
		require.Equal(t, before, w.show(t, 7), s.what)
		require.Equal(t, []int{0, 1}, []int{o.Updated, o.Unchanged}, s.what)
		return
	}
	require.Equal(t, version+1, w.Flight(7).Version, s.what)
	require.Equal(t, []int{1, 0}, []int{o.Updated, o.Unchanged}, s.what)
	require.Len(t, events, 2, s.what)
	require.Equal(t, []outbox.Target{outbox.Msg, outbox.Schd}, []outbox.Target{events[0].Target, events[1].Target}, s.what)
	var told struct {
		Change flight.Op
		Fields map[string]any
	}
	require.NoError(t, json.Unmarshal(events[0].Payload, &told))
	if s.want == deleted {
		require.Equal(t, flight.Delete, told.Change)
		require.Empty(t, told.Fields)
		require.Equal(t, outbox.Tombstone, events[1].Type)
		require.False(t, w.Flight(7).Live())
		return
	}
	require.Equal(t, flight.Update, told.Change)
	require.JSONEq(t, regexp.MustCompile(`@(\d\d)(\d\d)`).ReplaceAllString(s.want, "2026-03-18T$1:$2:00+08:00"), fieldsOf(t, told.Fields), s.what)
	patch(before, told.Fields)
	patch(before, map[string]any{"stateVersion": float64(version + 1), "lastMessageId": float64(id), "updatedAt": w.show(t, 7)["updatedAt"]})
	require.Equal(t, before, w.show(t, 7), s.what)
	require.Equal(t, string(flight.AppendJSON(nil, w.Flight(7), w.opt.Zone)), string(events[1].Payload), s.what)
}

func fieldsOf(t *testing.T, fields map[string]any) string {
	t.Helper()
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(text)
}
