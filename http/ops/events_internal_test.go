package ops

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/problem"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// deadLetters makes, in this order, the events 1 to 5: on msg one DEAD and one SENT, on schd DEAD ones of the flights 15
// (twice) and 16. Flight 15 has gone on to version 9 since, 16 is gone.
func deadLetters(t *testing.T) (*API, *bell, *pgxpool.Pool) {
	t.Helper()
	a, b, pool := desk(t)
	event := func(target outbox.Target, flid, version int64) outbox.Event {
		return outbox.Event{
			Target: target, Message: message.Position{ID: version}, FLID: flid, PartitionKey: "15", Type: outbox.Upsert, StateVersion: version,
			Kind: "FLOP-STND", Payload: json.RawMessage(`{"old":true}`),
		}
	}
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := a.Store.InsertEvents(t.Context(), tx, []outbox.Event{
			event(outbox.Msg, 15, 1), event(outbox.Msg, 15, 2), event(outbox.Schd, 15, 3), event(outbox.Schd, 15, 4), event(outbox.Schd, 16, 5),
		}, a.Now()); err != nil {
			return err
		}
		f := &flight.Flight{FLID: 15, OperationDay: "2026-11-30", Version: 9, CreatedBy: message.Position{ID: 1}, LastMessage: message.Position{ID: 9}, UpdatedAt: a.Now(), Published: true}
		return store.WriteAll(t.Context(), tx, a.Store.SaveFlights([]store.Save{{After: f}}))
	}))
	_, err := pool.Exec(t.Context(), `UPDATE msg_event SET state = CASE event_id WHEN 2 THEN 'SENT' ELSE 'DEAD' END, attempts = 5`)
	require.NoError(t, err)
	return a, b, pool
}

func replayEvents(t *testing.T, a *API, o ReplayEventsOrder) (ReplayedEvents, error) {
	t.Helper()
	o.Reason = "the limit is raised"
	answer, err := carryOut(t.Context(), a, By{Actor: "olga"}, "events-replay", o, a.sendAgain)
	if err != nil {
		return ReplayedEvents{}, err
	}
	return answer.(ReplayedEvents), nil
}

func results(a ReplayedEvents) (all []string) {
	for _, i := range a.Items.Items {
		all = append(all, string(i.Result))
	}
	return all
}

// waiting tells the events that wait, by id, target, type, version and value.
func waiting(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(context.WithoutCancel(t.Context()),
		`SELECT concat_ws(' ', event_id, target, event_type, state_version, attempts, payload->>'old', payload->>'stateVersion') FROM msg_event WHERE state = 'PENDING' ORDER BY 1`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

func TestEventsReplay(t *testing.T) {
	t.Parallel()
	a, b, pool := deadLetters(t)
	got, err := replayEvents(t, a, ReplayEventsOrder{EventIDs: []int64{5, 3, 4, 1, 2, 77}})
	require.NoError(t, err)
	require.Equal(t, []string{"QUEUED", "SKIPPED", "QUEUED", "QUEUED", "QUEUED", "NOT_FOUND"}, results(got))
	require.Equal(t, "it is SENT", got.Items.Items[1].Why)
	require.Equal(t, []string{
		"1 KAFKA:msg UPSERT 1 0 true",
		"6 KAFKA:schd UPSERT 9 0 9", // not the payload of old
		"7 KAFKA:schd TOMBSTONE 5 0",
	}, waiting(t, pool))
	require.Equal(t, 2, b.woken)
	require.Equal(t, "events-replay", audited(t, pool).Action)

	got, err = replayEvents(t, a, ReplayEventsOrder{Target: "KAFKA:schd"})
	require.NoError(t, err)
	require.Equal(t, []string{"SKIPPED", "SKIPPED", "SKIPPED"}, results(got), "the newer states still wait")
	require.Equal(t, "a newer state of flight 15 waits, event 6", got.Items.Items[0].Why)
}

func TestEventsReplayOfARange(t *testing.T) {
	t.Parallel()
	a, _, pool := deadLetters(t)
	got, err := replayEvents(t, a, ReplayEventsOrder{Order: Order{DryRun: true}, FromEventID: 2, ToEventID: 4})
	require.NoError(t, err)
	require.Equal(t, []string{"QUEUED", "QUEUED"}, results(got))
	require.True(t, got.DryRun)
	require.False(t, got.More)
	require.Empty(t, waiting(t, pool))
	got, err = replayEvents(t, a, ReplayEventsOrder{Target: "KAFKA:msg", EventIDs: []int64{1, 3}})
	require.NoError(t, err)
	require.Equal(t, []string{"QUEUED", "SKIPPED"}, results(got))
	require.Equal(t, []string{"1 KAFKA:msg UPSERT 1 0 true"}, waiting(t, pool))
}

// The state of a schd replay is read while the head cannot commit a newer one.
func TestEventsReplayWaitsForTheHead(t *testing.T) {
	t.Parallel()
	a, _, pool := deadLetters(t)
	_, err := pool.Exec(t.Context(), "INSERT INTO pipeline_lease (lane, role, heartbeat_at) VALUES ('default', 'head', now())")
	require.NoError(t, err)
	head, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = head.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = head.Exec(t.Context(), "UPDATE pipeline_lease SET heartbeat_at = now()")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = carryOut(ctx, a, By{Actor: "olga"}, "events-replay", ReplayEventsOrder{Order: Order{Reason: "x"}, EventIDs: []int64{3}}, a.sendAgain)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, waiting(t, pool))
}

func TestEventsReplayRefusesWhatNamesNothing(t *testing.T) {
	t.Parallel()
	a, _, _ := deadLetters(t)
	for _, o := range []ReplayEventsOrder{
		{}, {Target: "KAFKA:other"}, {EventIDs: []int64{1}, FromEventID: 1}, {EventIDs: make([]int64, maxReplayedEvents+1)},
	} {
		_, err := replayEvents(t, a, o)
		require.Error(t, err)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code)
	}
}

// A dead event that has gone to the archive is sent again like any other, by its id; what else is there says how it stands.
func TestEventsReplay_outOfTheArchive(t *testing.T) {
	t.Parallel()
	a, _, pool := deadLetters(t)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO inbox_cursor (lane, generation, updated_at) VALUES ('default', 2, now());
		INSERT INTO msg_event_hst SELECT event_id, target, msg_id, event_id % 2, flid, partition_key, event_type, state_version, kind, sndr, payload, state, attempts,
			next_attempt_at, last_error, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at, now(), 'TOOLARGE' FROM msg_event WHERE event_id <> 3;
		DELETE FROM msg_event WHERE event_id <> 3`)
	require.NoError(t, err)
	all, err := replayEvents(t, a, ReplayEventsOrder{Target: outbox.Msg})
	require.NoError(t, err)
	require.Empty(t, all.Items.Items, "all of a target are those in work: nobody wants what died months ago by mistake")

	tried, err := replayEvents(t, a, ReplayEventsOrder{EventIDs: []int64{1, 2, 5, 77}, Order: Order{DryRun: true}})
	require.NoError(t, err)
	require.Equal(t, []string{"QUEUED", "SKIPPED", "QUEUED", "NOT_FOUND"}, results(tried))
	require.Empty(t, waiting(t, pool), "taken back")

	got, err := replayEvents(t, a, ReplayEventsOrder{EventIDs: []int64{1, 2, 5, 77}})
	require.NoError(t, err)
	require.Equal(t, results(tried), results(got))
	require.Equal(t, "it is SENT", got.Items.Items[1].Why)
	require.Equal(t, []string{"1 KAFKA:msg UPSERT 1 0 true", "7 KAFKA:schd TOMBSTONE 5 0"}, waiting(t, pool))
	var left, refused int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM msg_event_hst`).Scan(&left))
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM msg_event WHERE refusal = 'TOOLARGE'`).Scan(&refused))
	require.Equal(t, 2, left, "what was not asked for, and what is SENT, stays")
	require.Equal(t, 2, refused, "as it was")
}
