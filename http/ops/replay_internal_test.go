package ops

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// ended is one message for every way to end, at minute id past one o'clock; 1 … 9 are live, 20 … are archived.
const ended = `
INSERT INTO inbox_cursor (lane, generation, committed_up_to, updated_at) VALUES ('default', 1, 100, now());
INSERT INTO proc_state (msg_id, generation, state, error_class, root_error_class, skip_reason, identity_reuse, sndr, type, styp, seqn, dttm, content_hash,
    identity_key, attempts, received_at, created_at, updated_at, finished_at, backfill_at, backfill_next_at, backfill_attempts, backfill_error)
SELECT id, 1, state, class, root, skip, reuse, 'AODB', 'FLOP', 'STND', 7, '2026-11-30 01:00Z', '\x0a', CASE WHEN skip IS NULL THEN 'AODB|FLOP|STND|'||id END,
    5, '2026-11-30 01:00Z'::timestamptz + id * interval '1 minute', now(), now(), CASE WHEN state IN ('PENDING', 'FAILED') THEN NULL ELSE now() END,
    CASE WHEN id = 1 THEN now() END, CASE WHEN id IN (3, 4) THEN '2027-01-01Z'::timestamptz END, CASE WHEN id IN (3, 4) THEN 1 ELSE 0 END, CASE WHEN id = 4 THEN 'away' END
FROM (VALUES (1, 'DEAD', 'EXHAUSTED', 'INFRA', NULL, NULL), (2, 'DEAD', 'MALFORMED', 'MALFORMED', NULL, NULL), (3, 'DEAD', 'CODEC_ERROR', 'CODEC_ERROR', NULL, NULL),
    (4, 'DEAD', 'UNSUPPORTED', 'UNSUPPORTED', NULL, NULL), (5, 'SUCCEEDED', NULL, NULL, NULL, NULL), (6, 'SKIPPED', NULL, NULL, 'duplicate-of:5', 'content'),
    (7, 'SKIPPED', NULL, NULL, 'ignored:LDM-*', NULL), (8, 'PENDING', NULL, NULL, NULL, NULL), (9, 'DEAD', 'EXHAUSTED', 'INFRA', NULL, NULL)) v(id, state, class, root, skip, reuse);
INSERT INTO proc_state_hst (msg_id, generation, state, error_class, root_error_class, received_at, created_at, updated_at, finished_at, attempts, archived_at, identity_key)
VALUES (20, 1, 'DEAD', 'EXHAUSTED', 'INFRA', '2026-11-30 01:20Z', now(), now(), now(), 5, now(), 'k20'), (21, 0, 'DEAD', 'EXHAUSTED', 'INFRA', now(), now(), now(), now(), 5, now(), 'k21');
INSERT INTO msg_identity (identity_key, msg_id, generation, dttm, content_hash, bound_at) VALUES ('AODB|FLOP|STND|7', 5, 1, now(), '\x0b', now());
`

// box is a mailbox that still has message 9 and is away when asked for others.
type box struct{}

func (box) Text(_ context.Context, id int64) ([]byte, bool, error) {
	if id == 1 {
		return nil, false, errors.New("asked though we have it")
	}
	return []byte("<MSG/>"), id == 9, nil
}

func replays(t *testing.T) (*API, *bell, *pgxpool.Pool) {
	t.Helper()
	a, b, pool := desk(t)
	zone := time.FixedZone("CST", 8*60*60)
	a.Replaying = Replaying{
		Texts: box{}, Identity: message.IdentityDefaults(), Decode: sis.Options{Zone: zone}, Flight: flight.Options{Zone: zone},
	}
	_, err := pool.Exec(t.Context(), ended)
	require.NoError(t, err)
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO msg_raw (msg_id, generation, body, size_bytes, created_at) SELECT id, gen, $1, $2, now()
		FROM (VALUES (1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (20, 1), (21, 0)) v(id, gen)`, enc.EncodeAll([]byte(dead), nil), len(dead))
	require.NoError(t, err)
	return a, b, pool
}

const dead = `<MSG><META><SNDR>AODB</SNDR><SEQN>7</SEQN><DTTM>20261130090000</DTTM><TYPE>NONE</TYPE><STYP>SUCH</STYP></META></MSG>`

func order(ids ...int64) ReplayOrder { return ReplayOrder{Order: Order{Reason: "INC-7"}, IDs: ids} }

func verdicts(r Replayed) map[int64]string {
	out := map[int64]string{}
	for _, i := range r.Items {
		out[i.ID] = string(i.Result)
	}
	return out
}

func TestReplay_everyEnd(t *testing.T) {
	t.Parallel()
	a, b, pool := replays(t)
	got, err := a.Replay(t.Context(), By{Actor: "olga"}, order(9, 1, 2, 3, 4, 5, 6, 7, 8, 20, 21, 77, 1))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(map[int64]string{
		1: "QUEUED", 2: "SKIPPED", 3: "SKIPPED", 4: "QUEUED", 5: "SKIPPED", 6: "SKIPPED", 7: "SKIPPED", 8: "SKIPPED", 9: "QUEUED",
		20: "QUEUED", 21: "SKIPPED", 77: "NOT_FOUND",
	}, verdicts(got)))
	require.Equal(t, bell{1, 1}, *b)

	rows, err := pool.Query(t.Context(), `SELECT msg_id FROM proc_state WHERE state = 'PENDING' AND attempts = 0 AND replay_count = 1 AND finished_at IS NULL
		AND error_class IS NULL AND backfill_next_at IS NULL AND backfill_at IS NULL AND backfill_attempts = 0 AND identity_key IS NOT NULL ORDER BY msg_id`)
	require.NoError(t, err)
	var ids []int64
	for rows.Next() {
		var id int64
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []int64{1, 4, 9, 20}, ids, "as if never tried, with their identities; 20 is out of the archive")
	var archived int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM proc_state_hst`).Scan(&archived))
	require.Equal(t, 1, archived)

	again, err := a.Replay(t.Context(), By{Actor: "olga"}, order(1))
	require.NoError(t, err)
	require.Equal(t, "SKIPPED", verdicts(again)[1], "twice changes nothing")
}

func TestReplay_byClassAndTime(t *testing.T) {
	t.Parallel()
	a, _, _ := replays(t)
	for name, c := range map[string]struct {
		order ReplayOrder
		want  map[int64]string
	}{
		"root class":          {ReplayOrder{Class: fault.Infra}, map[int64]string{1: "QUEUED", 9: "QUEUED", 20: "QUEUED"}},
		"each of a bad class": {ReplayOrder{Class: fault.Malformed}, map[int64]string{2: "SKIPPED"}},
		"a span of time": {ReplayOrder{From: a.Now().Add(4 * time.Minute), To: a.Now().Add(20 * time.Minute), Force: true}, map[int64]string{
			4: "QUEUED", 6: "QUEUED", 9: "QUEUED",
		}},
	} {
		c.order.Order = Order{Reason: "x", DryRun: true}
		got, err := a.Replay(t.Context(), By{}, c.order)
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(c.want, verdicts(got)), name)
	}
}

// K26: the identity is the forced message's then, so that the head takes it.
func TestReplay_forceTakesTheIdentity(t *testing.T) {
	t.Parallel()
	a, _, pool := replays(t)
	o := order(6)
	o.Force = true
	got, err := a.Replay(t.Context(), By{}, o)
	require.NoError(t, err)
	require.Equal(t, "QUEUED", verdicts(got)[6])
	var owner int64
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT msg_id FROM msg_identity WHERE identity_key = 'AODB|FLOP|STND|7'`).Scan(&owner))
	require.Equal(t, int64(6), owner)
}

// The mark is claimed between the look and the deed: the database itself keeps them apart.
func TestReplay_excludesMarking(t *testing.T) {
	t.Parallel()
	a, _, pool := replays(t)
	found, err := a.lookAtTexts(t.Context(), order(1))
	require.NoError(t, err)
	marking, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = marking.Exec(t.Context(), `UPDATE proc_state SET backfill_at = NULL, backfill_attempts = 1, backfill_next_at = '2027-01-01Z' WHERE msg_id = 1`)
	require.NoError(t, err)
	done := make(chan []int64)
	go func() {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			close(done)
			return
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		ids, _ := a.Store.PutBack(t.Context(), tx, found.ids, nil, a.Now())
		done <- ids
	}()
	require.Eventually(t, func() bool { // it waits for the mark's claim to be committed
		var waiting int
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
		return waiting == 1
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, marking.Commit(t.Context()))
	require.Empty(t, <-done)
}

func TestReplay_dryRunShowsHowItWouldEnd(t *testing.T) {
	t.Parallel()
	a, _, pool := replays(t)
	o := order(1, 9)
	o.DryRun = true
	got, err := a.Replay(t.Context(), By{}, o)
	require.NoError(t, err)
	require.Contains(t, got.Items[0].Ends, "UNSUPPORTED")
	require.Contains(t, got.Items[1].Ends, "MALFORMED", "by the text that only the mailbox has")
	var pending int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM proc_state WHERE state = 'PENDING'`).Scan(&pending))
	require.Equal(t, 1, pending)
	require.True(t, audited(t, pool).DryRun)
}

func TestReplay_refuses(t *testing.T) {
	t.Parallel()
	a := &API{}
	at := time.Now()
	for name, o := range map[string]ReplayOrder{
		"nothing": {}, "both": {IDs: []int64{1}, Class: fault.Infra}, "no class": {Class: "BAD"}, "backwards": {From: at, To: at},
		"too many": {IDs: make([]int64, maxReplay+1)},
	} {
		o.Reason = "x"
		_, err := a.Replay(t.Context(), By{}, o)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, name)
	}
	require.NotNil(t, a.Orders()["/ops/replay"])
}
