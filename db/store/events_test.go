package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

func event(target outbox.Target, msg, flid, version int64) outbox.Event {
	e := outbox.Event{
		Target: target, Message: message.Position{ID: msg}, FLID: flid, PartitionKey: fmt.Sprint(flid), Type: outbox.Upsert,
		StateVersion: version, Kind: "FLOP-PSDT", SNDR: "AODB", ReceivedAt: at.Add(-time.Second), Payload: json.RawMessage(`{"flid":1}`),
	}
	if target == outbox.Msg {
		e.Payload = json.RawMessage(fmt.Sprintf(`{"messageId":%d}`, msg))
	}
	return e
}

// at is a moment PostgreSQL keeps to the digit.
var at = time.Date(2026, 11, 30, 9, 3, 11, 123456000, time.UTC)

func TestInsertEventsKeepsOrderAndContent(t *testing.T) {
	t.Parallel()
	tx, s := dbtest.Tx(t), store.New(time.UTC)
	var in []outbox.Event
	for i := range int64(1000) {
		in = append(in, event(outbox.Msg, i, i%7, i), event(outbox.Schd, i, i%7, i))
	}
	in[5].Type, in[5].Payload = outbox.Tombstone, nil
	in[7].ReceivedAt = time.Time{}
	in[9].Message.Generation = 3
	in[11].Payload = json.RawMessage(`{"rema":"` + strings.Repeat("é", 3<<20) + `"}`) // more than one INSERT
	require.NoError(t, s.InsertEvents(t.Context(), tx, in, at))

	var got [2][]store.Queued
	for i, target := range outbox.AllTargets() {
		var err error
		got[i], err = s.PendingEvents(t.Context(), tx, target, 0, 5000)
		require.NoError(t, err)
	}
	for i, want := range in {
		q := got[i%2][i/2]
		if i > 0 {
			require.Greater(t, q.ID, got[(i-1)%2][(i-1)/2].ID, "ids ascend in the order given, over both targets")
		}
		want = want.WithID(q.ID)
		require.Empty(t, cmp.Diff(store.Queued{Event: want}, q), "event %d", i)
	}
}

func TestInsertNoEvents(t *testing.T) {
	t.Parallel()
	require.NoError(t, store.New(time.UTC).InsertEvents(t.Context(), nil, nil, at))
}

func TestMarks(t *testing.T) {
	t.Parallel()
	tx, s := dbtest.Tx(t), store.New(time.UTC)
	var in []outbox.Event
	for i := range int64(6) {
		in = append(in, event(outbox.Schd, i, 15, i+1))
	}
	in = append(in, event(outbox.Schd, 9, 16, 1))
	require.NoError(t, s.InsertEvents(t.Context(), tx, in, at))
	waiting, err := s.WaitingEvents(t.Context(), tx, outbox.Schd, 100)
	require.NoError(t, err)
	require.Len(t, waiting, 7)
	require.Equal(t, at, waiting[0].CreatedAt.UTC())
	id := func(i int) int64 { return waiting[i].ID }

	require.NoError(t, s.MarkFailed(t.Context(), tx, []store.Refusal{
		{ID: id(0), Fate: outbox.TooLarge, Err: errors.New("too\x00large")},
		{ID: id(6), Fate: outbox.Refused, Err: errors.New("no")},
		{ID: id(1), Fate: outbox.Refused, Next: at.Add(time.Second), Err: errors.New("not now")},
	}))
	require.Equal(t, []string{"DEAD 1 - too\uFFFDlarge", "PENDING 1 2026-11-30 09:03:12.123456+00 not now"}, states(t, tx, id(0), id(1)))

	require.NoError(t, s.MarkSent(t.Context(), tx, outbox.Schd, []store.Delivered{
		{ID: id(3), FLID: 15, Place: outbox.Place{Partition: 2, Offset: 77}, Older: []int64{id(1), id(2)}},
	}, at))
	newest := fmt.Sprintf("SENT by %d", id(3))
	require.Equal(t, []string{newest, newest, newest, "SENT 2/77", "PENDING 0 - ", "DEAD 1 - no"},
		states(t, tx, id(0), id(1), id(2), id(3), id(4), id(6)))

	require.NoError(t, s.MarkSent(t.Context(), tx, outbox.Schd, []store.Delivered{{ID: id(4), FLID: 15, Place: outbox.Place{Offset: 7}}}, at))
	require.Equal(t, []string{"SENT 0/7"}, states(t, tx, id(4)))

	b, err := s.EventBacklog(t.Context(), tx, outbox.Schd)
	require.NoError(t, err)
	require.Equal(t, store.EventBacklog{Pending: 1, Dead: 1, Oldest: b.Oldest}, b)
	require.True(t, b.Oldest.Equal(at))
	b, err = s.EventBacklog(t.Context(), tx, outbox.Msg)
	require.NoError(t, err)
	require.True(t, b.Oldest.IsZero())
}

// states tells the delivery of events in short.
func states(t *testing.T, tx pgx.Tx, ids ...int64) (all []string) {
	t.Helper()
	for _, id := range ids {
		var s string
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT CASE
			WHEN superseded_by IS NOT NULL THEN state || ' by ' || superseded_by
			WHEN state = 'SENT' THEN state || ' ' || kafka_partition || '/' || coalesce(kafka_offset::text, '?')
			ELSE state || ' ' || attempts || ' ' || coalesce((next_attempt_at AT TIME ZONE 'UTC')::text || '+00', '-') || ' ' || coalesce(last_error, '') END
			FROM msg_event WHERE event_id = $1`, id).Scan(&s))
		all = append(all, s)
	}
	return all
}

// A target's terms ascend; another cluster's producer ids are others, and an epoch that is the last is followed by a new producer.
func TestClaimTerm(t *testing.T) {
	t.Parallel()
	tx, s := dbtest.Tx(t), store.New(time.UTC)
	claim := func(target outbox.Target, offer outbox.Term) outbox.Term {
		got, err := s.ClaimTerm(t.Context(), tx, "default", target, offer)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, outbox.Term{Cluster: "a", Producer: 7}, claim(outbox.Msg, outbox.Term{Cluster: "a", Producer: 7}))
	require.Equal(t, outbox.Term{Cluster: "a", Producer: 7, Epoch: 1}, claim(outbox.Msg, outbox.Term{Cluster: "a", Producer: 8}))
	require.Equal(t, outbox.Term{Cluster: "a", Producer: 9}, claim(outbox.Schd, outbox.Term{Cluster: "a", Producer: 9}))
	require.Equal(t, outbox.Term{Cluster: "b", Producer: 1}, claim(outbox.Msg, outbox.Term{Cluster: "b", Producer: 1}))
	_, err := tx.Exec(t.Context(), "UPDATE delivery_term SET epoch = 32766")
	require.NoError(t, err)
	require.Equal(t, outbox.Term{Cluster: "b", Producer: 1, Epoch: 32767}, claim(outbox.Msg, outbox.Term{Cluster: "b", Producer: 2}))
	require.Equal(t, outbox.Term{Cluster: "b", Producer: 3}, claim(outbox.Msg, outbox.Term{Cluster: "b", Producer: 3}))
}
