package sentinel_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sentinel"
)

var (
	noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	doc  = json.RawMessage(`{"flid":7,"stnd":"203","stateVersion":5}`)
)

// agreeing is a flight with which everything agrees.
func agreeing() sentinel.Evidence {
	return sentinel.Evidence{
		FLID: 7, Doc: doc,
		Flight:   &flight.Flight{FLID: 7, Version: 5, Published: true, UpdatedAt: noon, LastMessage: message.Position{ID: 42}, MAFL: []string{"CA1", "CA2"}},
		Event:    &sentinel.Event{ID: 99, Type: outbox.Upsert, Version: 5, Payload: doc},
		Changed:  5,
		Children: []string{"CA2", "CA1"},
		Message:  &sentinel.Message{State: message.Succeeded, Marked: true},
	}
}

// gone is one that was deleted.
func gone() sentinel.Evidence {
	e := agreeing()
	e.Flight.Published, e.Flight.DeletedBy, e.Flight.MAFL = false, message.Position{ID: 42}, nil
	e.Event = &sentinel.Event{ID: 99, Type: outbox.Tombstone, Version: 5}
	return e
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of    func() sentinel.Evidence
		spoil func(*sentinel.Evidence)
		about sentinel.About // empty: it agrees
		says  string
	}{
		"all well":              {agreeing, func(*sentinel.Evidence) {}, "", ""},
		"gone, all well":        {gone, func(*sentinel.Evidence) {}, "", ""},
		"unreadable":            {agreeing, func(e *sentinel.Evidence) { *e = sentinel.Evidence{FLID: 7, Unreadable: "bad"} }, sentinel.AboutState, "bad"},
		"no event":              {agreeing, func(e *sentinel.Evidence) { e.Event = nil }, sentinel.AboutEvent, "no event"},
		"no event any more":     {agreeing, func(e *sentinel.Evidence) { e.Event, e.Flight.UpdatedAt = nil, noon.AddDate(0, 0, -91) }, "", ""},
		"never published":       {gone, func(e *sentinel.Evidence) { e.Event = nil }, "", ""},
		"an older event":        {agreeing, func(e *sentinel.Evidence) { e.Event.Version = 4 }, sentinel.AboutEvent, "at version 5, event 99 told version 4"},
		"a newer event":         {agreeing, func(e *sentinel.Evidence) { e.Event.Version = 6 }, sentinel.AboutEvent, "version 6"},
		"told as gone":          {agreeing, func(e *sentinel.Evidence) { e.Event.Type, e.Event.Payload = outbox.Tombstone, nil }, sentinel.AboutEvent, "is gone"},
		"gone, told as living":  {gone, func(e *sentinel.Evidence) { e.Event.Type, e.Event.Payload = outbox.Upsert, doc }, sentinel.AboutEvent, "gave it to them"},
		"told otherwise":        {agreeing, func(e *sentinel.Evidence) { e.Event.Payload = json.RawMessage(`{"flid":7,"stnd":"204","gate":"A1"}`) }, sentinel.AboutEvent, "gate, stateVersion, stnd"},
		"told nonsense":         {agreeing, func(e *sentinel.Evidence) { e.Event.Payload = json.RawMessage(`[]`) }, sentinel.AboutEvent, "everything"},
		"history ends before":   {agreeing, func(e *sentinel.Evidence) { e.Changed = 4 }, sentinel.AboutHistory, "ends at version 4"},
		"no history":            {agreeing, func(e *sentinel.Evidence) { e.Changed = 0 }, "", ""},
		"a child unlisted":      {agreeing, func(e *sentinel.Evidence) { e.Children = append(e.Children, "CA3") }, sentinel.AboutLinks, "[CA1 CA2 CA3]"},
		"a child that is not":   {agreeing, func(e *sentinel.Evidence) { e.Children = nil }, sentinel.AboutLinks, "lists [CA1 CA2]"},
		"gone, children linked": {gone, func(e *sentinel.Evidence) { e.Children = []string{"CA3"} }, "", ""},
		"message lost":          {agreeing, func(e *sentinel.Evidence) { e.Message = nil }, sentinel.AboutMessage, "not there"},
		"message long gone":     {agreeing, func(e *sentinel.Evidence) { e.Message, e.Flight.UpdatedAt = nil, noon.AddDate(0, 0, -91) }, "", ""},
		"message was refused":   {agreeing, func(e *sentinel.Evidence) { e.Message.State = message.Dead }, sentinel.AboutMessage, "42 touched it last, and is DEAD"},
		"mark owed":             {agreeing, func(e *sentinel.Evidence) { *e.Message = sentinel.Message{State: message.Succeeded, Owed: true} }, "", ""},
		"mark given up":         {agreeing, func(e *sentinel.Evidence) { *e.Message = sentinel.Message{State: message.Succeeded, GivenUp: true} }, "", ""},
		"mark forgotten":        {agreeing, func(e *sentinel.Evidence) { e.Message.Marked = false }, sentinel.AboutMark, "owed none"},
		"mark taken away":       {agreeing, func(e *sentinel.Evidence) { e.Unmarked = true }, sentinel.AboutMark, "in the mailbox it is not"},
	} {
		e := c.of()
		c.spoil(&e)
		found := sentinel.Compare(e, sentinel.Policy{Marks: true, Kept: noon.AddDate(0, 0, -90)})
		if c.about == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, c.about, found[0].About, name)
		require.EqualValues(t, 7, found[0].FLID, name)
		require.Contains(t, found[0].Detail, c.says, name)
	}
}

func TestCompare_shadowOwesNoMarks(t *testing.T) {
	t.Parallel()
	e := agreeing()
	e.Message.Marked, e.Unmarked = false, true
	require.Empty(t, sentinel.Compare(e, sentinel.Policy{}))
}

// A day's sample is about its share, always the same, and another one the next day: in some months every flight is met.
func TestSampled(t *testing.T) {
	t.Parallel()
	const all = 10_000
	count := func(day string, share float64) (n int) {
		for flid := int64(1); flid <= all; flid++ {
			if sentinel.Sampled(flid, day, share) {
				n++
			}
		}
		return n
	}
	require.Zero(t, count("2026-12-01", 0))
	require.Equal(t, all, count("2026-12-01", 1))
	require.InDelta(t, all/100, count("2026-12-01", 0.01), 40)
	days := 0
	for d := noon; !sentinel.Sampled(7, d.Format(time.DateOnly), 0.01); d = d.AddDate(0, 0, 1) {
		days++
		require.Less(t, days, 2000, "flight 7 is never looked at")
	}
}
