package outbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// airport decides messages about flights of one day and builds their events.
type airport struct {
	*flight.Set
	opt   outbox.Options
	last  int64         // the id of the last message
	batch *outbox.Batch // gathers what is decided; nil: nobody asks
}

func setup() *airport {
	return &airport{Set: flight.NewSet(), opt: outbox.Options{Zone: time.FixedZone("", int(8*time.Hour/time.Second))}}
}

func (a *airport) decide(t require.TestingT, kind string, records ...sis.Record) []outbox.Event {
	a.last++
	pos := message.Position{ID: a.last}
	meta := message.Meta{SNDR: "AODB", DTTM: time.Unix(0, 0), TYPE: kind[:4], STYP: kind[5:]}
	o, err := flight.Decide(a, sis.Message{Meta: meta, Records: records}, pos, time.Unix(a.last, 0), flight.Options{Zone: a.opt.Zone})
	require.NoError(t, err)
	a.Apply(o)
	cause := outbox.Cause{Pos: pos, Meta: meta, ReceivedAt: time.Unix(1, 0)}
	if a.batch != nil {
		a.batch.Add(cause, o)
	}
	return outbox.Build(cause, o, a.opt)
}

// fltr is a schedule's record of a flight, a child of maid if that is not 0.
func fltr(flid, maid int64) sis.Record {
	r := sis.Record{FLID: flid, Fields: sis.Fields{
		"alcd": sis.TextValue("CA"), "flno": sis.TextValue(fmt.Sprint("CA", flid)), "mvin": sis.TextValue("D"), "sodt": {Type: sis.Moment},
		"flin": sis.TextValue("D"), "maid": {},
	}}
	if maid != 0 {
		r.Fields["maid"] = sis.NumberValue(maid)
	}
	return r
}

func stnd(flid int64, stand string) sis.Record {
	return sis.Record{FLID: flid, Fields: sis.Fields{"stnd": sis.TextValue(stand)}}
}

func fdel(flid int64) sis.Record { return sis.Record{FLID: flid, Delete: true} }

// brief shows events as "target type flid version", and whether they have a value.
func brief(events []outbox.Event) []string {
	all := []string{}
	for _, e := range events {
		all = append(all, fmt.Sprintf("%s %s %d v%d %t", e.Target[len("KAFKA:"):], e.Type, e.FLID, e.StateVersion, e.Payload != nil))
	}
	return all
}

func TestMsgAndSchd(t *testing.T) {
	t.Parallel()
	a := setup()
	require.Equal(t, []string{"msg UPSERT 1 v1 true", "schd UPSERT 1 v1 true"}, brief(a.decide(t, "SCHD-DNLD", fltr(1, 0))))
	require.Equal(t, []string{"msg UPSERT 1 v2 true", "schd UPSERT 1 v2 true"}, brief(a.decide(t, "FLOP-STND", stnd(1, "203"))))
	require.Empty(t, a.decide(t, "FLOP-STND", stnd(1, "203")), "no change, no event")
	require.Equal(t, []string{"msg UPSERT 1 v3 true", "schd TOMBSTONE 1 v3 false"}, brief(a.decide(t, "FLOP-FDEL", fdel(1))))
	require.Equal(t, []string{"msg UPSERT 1 v4 true", "schd UPSERT 1 v4 true"}, brief(a.decide(t, "SCHD-ADFT", fltr(1, 0))))
}

func TestValueOnMsg(t *testing.T) {
	t.Parallel()
	a := setup()
	a.decide(t, "SCHD-DNLD", fltr(15, 0))
	e := a.decide(t, "FLOP-STND", stnd(15, "203"))[0].WithID(7)
	require.Equal(t, `{"eventId":7,"messageId":2,"kind":"FLOP-STND","change":"UPDATE","flid":15,"ffid":"CA-CA15-D-01JAN700800-D",`+
		`"operationDay":"1970-01-01","stateVersion":2,"dttm":"1970-01-01T08:00:00+08:00","fields":{"stnd":"203"}}`, string(e.Payload))
	want := outbox.Event{
		ID: 7, Target: outbox.Msg, Message: message.Position{ID: 2}, FLID: 15, PartitionKey: "15", Type: outbox.Upsert, StateVersion: 2,
		Kind: "FLOP-STND", SNDR: "AODB", Payload: e.Payload, ReceivedAt: time.Unix(1, 0),
	}
	require.Empty(t, cmp.Diff(want, e))
}

// Contract §8.15, §8.22: a child is told through its master and is not on schd.
func TestCodeShare(t *testing.T) {
	t.Parallel()
	a := setup()
	require.Equal(t, []string{"msg UPSERT 2 v1 true"}, brief(a.decide(t, "SCHD-ADFT", fltr(2, 1))), "no master yet")
	a.decide(t, "SCHD-ADFT", fltr(1, 0), fltr(3, 1))

	events := a.decide(t, "FLOP-STND", stnd(2, "203"))
	require.Equal(t, []string{"msg UPSERT 1 v1 true"}, brief(events), "the master's own state is as it was")
	require.Equal(t, map[string]any{"flid": 2.0, "flno": "CA2", "change": "UPDATE", "fields": map[string]any{"stnd": "203"}}, value(t, events[0])["child"])
	require.Empty(t, value(t, events[0])["fields"])

	events = a.decide(t, "FLOP-STND", stnd(2, "204"), stnd(1, "204"), stnd(3, "204"))
	require.Equal(t, []string{"msg UPSERT 1 v2 true", "schd UPSERT 1 v2 true"}, brief(events), "one event on msg a message and flight")
	require.Len(t, value(t, events[0])["children"], 2)
	require.NotContains(t, value(t, events[0]), "child")
	require.Equal(t, map[string]any{"stnd": "204"}, value(t, events[0])["fields"])

	require.Equal(t, []string{"msg UPSERT 2 v4 true", "msg UPSERT 1 v3 true", "schd UPSERT 2 v4 true", "schd UPSERT 1 v3 true"},
		brief(a.decide(t, "SCHD-ADFT", fltr(2, 0))), "independent now")
	require.Equal(t, []string{"msg UPSERT 1 v4 true", "schd TOMBSTONE 2 v5 false", "schd UPSERT 1 v4 true"},
		brief(a.decide(t, "SCHD-ADFT", fltr(2, 1))), "a child again, after it was published")
	require.Equal(t, []string{"msg UPSERT 1 v5 true", "schd UPSERT 1 v5 true"}, brief(a.decide(t, "FLOP-FDEL", fdel(2))), "no second tombstone")
	require.Equal(t, []string{"msg UPSERT 1 v6 true", "msg UPSERT 3 v3 true", "schd TOMBSTONE 1 v6 false"}, brief(a.decide(t, "FLOP-FDEL", fdel(1))))
}

func value(t *testing.T, e outbox.Event) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(e.Payload, &v))
	return v
}

func TestKeyBySender(t *testing.T) {
	t.Parallel()
	a := setup()
	a.opt.MsgKey = outbox.BySNDR
	events := a.decide(t, "SCHD-DNLD", fltr(1, 0))
	require.Equal(t, "AODB", events[0].PartitionKey)
	require.Equal(t, "1", events[1].PartitionKey, "schd is always by FLID")
}

func TestBatchKeepsMsgAndTheNewestState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := setup()
		a.batch = outbox.NewBatch(a.opt)
		var batch []outbox.Event
		for range rapid.IntRange(1, 8).Draw(rt, "messages") {
			flid, other := rapid.Int64Range(1, 3).Draw(rt, "flid"), rapid.Int64Range(0, 3).Draw(rt, "other")
			var events []outbox.Event
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				events = a.decide(rt, "SCHD-ADFT", fltr(flid, other))
			case 1:
				events = a.decide(rt, "FLOP-STND", stnd(flid, fmt.Sprint(other)), stnd(other, "9"))
			case 2:
				events = a.decide(rt, "FLOP-FDEL", fdel(flid))
			}
			once(rt, events)
			batch = append(batch, events...)
		}
		newest := map[int64]outbox.Event{}
		var msg []outbox.Event
		for _, e := range batch {
			if e.Target == outbox.Schd {
				newest[e.FLID] = e
			} else {
				msg = append(msg, e)
			}
		}
		var kept []outbox.Event
		for _, e := range outbox.Coalesce(batch) {
			if e.Target == outbox.Msg {
				kept = append(kept, e)
				continue
			}
			require.Empty(rt, cmp.Diff(newest[e.FLID], e))
			require.Equal(rt, a.Flight(e.FLID).Published, e.Type == outbox.Upsert)
			delete(newest, e.FLID)
		}
		require.Empty(rt, newest)
		require.Empty(rt, cmp.Diff(msg, kept))
		require.Empty(rt, cmp.Diff(outbox.Coalesce(batch), slices.Collect(a.batch.All()), cmpopts.EquateEmpty()), "the same, made at once")
		require.Equal(rt, len(outbox.Coalesce(batch)), a.batch.Len())
	})
}

// once checks that a message has at most one event a flight on each target, and that only tombstones have no value.
func once(t require.TestingT, events []outbox.Event) {
	seen := map[string]bool{}
	for _, e := range events {
		key := fmt.Sprint(e.Target, e.FLID)
		require.False(t, seen[key], key)
		seen[key] = true
		require.Equal(t, e.Type == outbox.Tombstone, e.Payload == nil)
		require.True(t, e.Payload == nil || json.Valid(e.WithID(1).Payload))
	}
}
