package deliver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/drain"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

// rig is a database with the leases, one role's topic in memory, and a clock that moves when told to.
type rig struct {
	pool  *pgxpool.Pool
	store *store.Store
	topic *kafkatest.Topic
	role  jobs.Role
	fence *lease.Fence
	reg   *prometheus.Registry
	deps  deliver.Deps

	mu  sync.Mutex
	now time.Time
}

func setup(tb testing.TB, role jobs.Role) *rig {
	tb.Helper()
	r := &rig{
		pool: dbtest.New(tb), store: store.New(time.UTC), topic: &kafkatest.Topic{}, role: role, reg: prometheus.NewRegistry(),
		now: time.Date(2026, 11, 30, 9, 3, 11, 0, time.UTC),
	}
	require.NoError(tb, lease.Ensure(tb.Context(), r.pool, "default", jobs.AllRoles()))
	metrics, err := deliver.NewMetrics(r.reg)
	require.NoError(tb, err)
	r.deps = deliver.Deps{
		Pool: r.pool, Store: r.store, Kafka: r.topic, Metrics: metrics, Now: r.clock,
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
	}
	r.take(tb, 1, "a")
	return r
}

func (r *rig) take(tb testing.TB, epoch int64, holder string) {
	tb.Helper()
	var err error
	r.fence, err = lease.Take(tb.Context(), r.pool, r.role, jobs.Wake{Lane: "default", Epoch: epoch}, holder)
	require.NoError(tb, err)
}

func (r *rig) clock() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }

func (r *rig) pass(d time.Duration) { r.mu.Lock(); defer r.mu.Unlock(); r.now = r.now.Add(d) }

func (r *rig) msg() *deliver.Msg { return deliver.NewMsg(deliver.Defaults(), r.deps) }

func (r *rig) schd() *deliver.Schd { return deliver.NewSchd(deliver.SchdDefaults(), r.deps) }

// insert puts one event for each flight given.
func (r *rig) insert(tb testing.TB, target outbox.Target, flids ...int64) {
	tb.Helper()
	events := make([]outbox.Event, len(flids))
	for i, flid := range flids {
		events[i] = outbox.Event{
			Target: target, Message: message.Position{ID: int64(i + 1)}, FLID: flid, PartitionKey: fmt.Sprint(flid), Type: outbox.Upsert,
			StateVersion: int64(i + 1), Kind: "FLOP-PSDT", SNDR: "AODB", ReceivedAt: r.clock(), Payload: json.RawMessage(fmt.Sprintf(`{"flid":%d}`, flid)),
		}
	}
	require.NoError(tb, db.InTx(tb.Context(), r.pool, func(tx pgx.Tx) error { return r.store.InsertEvents(tb.Context(), tx, events, r.clock()) }))
}

func (r *rig) step(t *testing.T, role drain.Role) drain.Next {
	t.Helper()
	next, err := role.Step(t.Context(), r.fence)
	require.NoError(t, err)
	return next
}

// run steps until the role has nothing to do or must wait.
func (r *rig) run(t *testing.T, role drain.Role) drain.Next {
	t.Helper()
	for range 100 {
		if next := r.step(t, role); !next.Again {
			return next
		}
	}
	require.Fail(t, "the role does not come to rest")
	return drain.Next{}
}

// column lists a column of all events in the order of their ids.
func (r *rig) column(t *testing.T, expr string) []string {
	t.Helper()
	rows, err := r.pool.Query(t.Context(), "SELECT coalesce(("+expr+")::text, '-') FROM msg_event ORDER BY event_id")
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

// sent lists the event ids in the topic, by partition.
func (r *rig) sent() map[int32][]int64 {
	out := make(map[int32][]int64)
	for p, records := range r.topic.Records() {
		for _, rec := range records {
			out[p] = append(out[p], rec.EventID)
		}
	}
	return out
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

func refuse(fate outbox.Fate, ids ...int64) func(outbox.Record) outbox.Fate {
	return func(r outbox.Record) outbox.Fate {
		if slices.Contains(ids, r.EventID) {
			return fate
		}
		return outbox.Acked
	}
}

func TestMsgDeliversInOrder(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	var flids []int64
	for i := range int64(1200) {
		flids = append(flids, i%19)
	}
	r.insert(t, outbox.Msg, flids...)
	r.insert(t, outbox.Schd, 1)
	r.pass(250 * time.Millisecond)
	m := r.msg()
	require.Equal(t, drain.Next{}, r.run(t, m))
	require.Equal(t, append(repeat("SENT", 1200), "PENDING"), r.column(t, "state"))
	n := 0
	for p, ids := range r.sent() {
		require.True(t, slices.IsSorted(ids), "partition %d", p)
		n += len(ids)
	}
	require.Equal(t, 1200, n)
	for _, records := range r.topic.Records() {
		require.Equal(t, "event-id", records[0].Headers[0].Key)
		require.JSONEq(t, fmt.Sprintf(`{"eventId":%d,"flid":%s}`, records[0].EventID, records[0].Key), string(records[0].Value))
	}
	pending, err := m.Pending(t.Context(), r.pool)
	require.NoError(t, err)
	require.False(t, pending)
	families, err := r.reg.Gather()
	require.NoError(t, err)
	require.Equal(t, "msgx_end_to_end_seconds", families[0].GetName())
	require.Equal(t, uint64(1200), families[0].GetMetric()[0].GetHistogram().GetSampleCount())
	require.InDelta(t, 1200*0.25, families[0].GetMetric()[0].GetHistogram().GetSampleSum(), 1e-6)
}

func TestMsgOutageSpendsNothing(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2, 3)
	r.topic.Away(true)
	m := r.msg()
	var waits []time.Duration
	for range 8 {
		waits = append(waits, r.step(t, m).Wait)
	}
	require.Equal(t, 100*time.Millisecond, waits[0])
	require.Equal(t, 5*time.Second, waits[7])
	require.True(t, slices.IsSorted(waits))
	require.Equal(t, repeat("PENDING 0 -", 3), r.column(t, "state || ' ' || attempts || ' ' || coalesce(next_attempt_at::text, '-')"))
	r.topic.Away(false)
	require.Equal(t, drain.Next{}, r.run(t, m))
	require.Equal(t, repeat("SENT", 3), r.column(t, "state"))
}

func TestK22_MsgStopsBehindARefusedEvent(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 15, 15, 15)
	r.topic.Judge(refuse(outbox.Refused, 2))
	m := r.msg()
	for attempt, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		require.Equal(t, drain.Next{Wait: pause}, r.run(t, m), "attempt %d", attempt+1)
		require.Equal(t, []string{"SENT 0", fmt.Sprintf("PENDING %d", attempt+1), "PENDING 0"}, r.column(t, "state || ' ' || attempts"))
		pending, err := m.Pending(t.Context(), r.pool)
		require.NoError(t, err)
		require.True(t, pending)
		r.pass(pause)
	}
	require.Equal(t, drain.Next{}, r.run(t, m))
	require.Equal(t, []string{"SENT 0", "DEAD 5", "SENT 0"}, r.column(t, "state || ' ' || attempts"))
	for _, ids := range r.sent() {
		require.Equal(t, []int64{1, 3}, ids)
	}
}

func TestOversizeEventIsDeadAtOnceAndNeighboursAreDelivered(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 15, 15, 15, 16)
	r.topic.Judge(refuse(outbox.TooLarge, 2))
	require.Equal(t, drain.Next{}, r.run(t, r.msg()))
	require.Equal(t, []string{"SENT", "DEAD", "SENT", "SENT"}, r.column(t, "state"))
	require.Equal(t, []string{"0", "1", "0", "0"}, r.column(t, "attempts"))
}

func TestEventInBackoffIsAWallForWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2, 3, 4)
	_, err := r.pool.Exec(t.Context(), "UPDATE msg_event SET next_attempt_at = $1 WHERE event_id = 3", r.clock().Add(time.Second))
	require.NoError(t, err)
	require.Equal(t, drain.Next{Wait: time.Second}, r.run(t, r.msg()))
	require.Equal(t, []string{"SENT", "SENT", "PENDING", "PENDING"}, r.column(t, "state"))
}

// A worker that dies between the acknowledgement and the mark: the next one finds the events in the topic.
func TestK22_TakeoverDoesNotRepeatWhatIsThere(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2, 3, 4, 5)
	r.topic.Deaf(true)
	require.Positive(t, r.step(t, r.msg()).Wait)
	require.Equal(t, repeat("PENDING", 5), r.column(t, "state"))
	r.topic.Deaf(false)
	r.insert(t, outbox.Msg, 6)
	require.Equal(t, drain.Next{}, r.run(t, r.msg()))
	require.Equal(t, repeat("SENT", 6), r.column(t, "state"))
	require.Equal(t, 2, r.topic.Sends())
	n := 0
	for _, ids := range r.sent() {
		n += len(ids)
	}
	require.Equal(t, 6, n)
}

func TestUnreadableTopicIsDeliveredToAllTheSame(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2)
	r.topic.Secret()
	require.Equal(t, drain.Next{}, r.run(t, r.msg()))
	require.Equal(t, repeat("SENT", 2), r.column(t, "state"))
}

func TestK04_FencedWorkerSendsAndMarksNothing(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1)
	old := r.fence
	r.take(t, 1, "b")
	_, err := r.msg().Step(t.Context(), old)
	require.ErrorIs(t, err, lease.ErrFenced)
	require.Zero(t, r.topic.Sends())
}

// A worker that loses the lease while it sends must not mark; its successor finds what it sent.
func TestK04_LeaseLostWhileSending(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2)
	old, m := r.fence, r.msg()
	r.deps.Kafka = usurped{r.topic, func() { r.take(t, 1, "b") }}
	_, err := r.msg().Step(t.Context(), old)
	require.ErrorIs(t, err, lease.ErrFenced)
	require.Equal(t, repeat("PENDING", 2), r.column(t, "state"))
	require.Equal(t, drain.Next{}, r.run(t, m))
	require.Equal(t, repeat("SENT", 2), r.column(t, "state"))
	require.Equal(t, 1, r.topic.Sends())
}

// usurped loses the lease during each Send.
type usurped struct {
	*kafkatest.Topic
	during func()
}

func (u usurped) Send(ctx context.Context, seat deliver.Seat, records []outbox.Record) []outbox.Result {
	u.during()
	return u.Topic.Send(ctx, seat, records)
}

func TestBacklogMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	b := deliver.NewBacklog(r.store, r.pool, r.clock)
	require.NoError(t, r.reg.Register(b))
	r.insert(t, outbox.Schd, 1, 2)
	r.pass(2 * time.Second)
	value := func(name, target string) int {
		families, err := r.reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && m.GetLabel()[0].GetValue() == target {
					return int(m.GetGauge().GetValue())
				}
			}
		}
		return -1
	}
	require.Equal(t, 2, value("msgx_events_pending", "KAFKA:schd"))
	require.Equal(t, 2, value("msgx_events_oldest_seconds", "KAFKA:schd"))
	require.Equal(t, 0, value("msgx_events_pending", "KAFKA:msg"))
	r.insert(t, outbox.Schd, 3)
	require.Equal(t, 2, value("msgx_events_pending", "KAFKA:schd"), "from the cache")
	r.pass(5 * time.Second)
	require.Equal(t, 3, value("msgx_events_pending", "KAFKA:schd"))
	families, err := r.reg.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	r.pool.Close()
	r.pass(5 * time.Second)
	require.Equal(t, -1, value("msgx_events_pending", "KAFKA:schd"), "absent when it cannot be read")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	require.NoError(t, deliver.Defaults().Validate())
	require.NoError(t, deliver.SchdDefaults().Validate())
	require.ErrorContains(t, deliver.Config{}.Validate(), "delivery.batch")
	err := deliver.SchdConfig{FlushPeriod: -1}.Validate()
	require.ErrorContains(t, err, "schd.flush-period")
	require.ErrorContains(t, err, "schd.flush-limit")
}

// A partition that is stuck keeps only its own events, however many wait for it.
func TestStuckPartitionHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, append(slices.Repeat([]int64{15}, 1200), 1, 2, 3, 4, 5, 6, 7, 8)...)
	r.topic.Judge(func(rec outbox.Record) outbox.Fate {
		if rec.Key == "15" {
			return outbox.Waiting
		}
		return outbox.Acked
	})
	m := r.msg()
	for range 3 {
		require.Positive(t, r.run(t, m).Wait)
	}
	require.Contains(t, r.column(t, "state")[1200:], "SENT", "behind more than a batch of stuck events")
	r.topic.Judge(nil)
	require.Equal(t, drain.Next{}, r.run(t, m))
	require.Equal(t, repeat("SENT", 1208), r.column(t, "state"))
	for _, ids := range r.sent() {
		require.True(t, slices.IsSorted(ids))
	}
}

// A worker that gives its role back and gets it again looks what others have left in the topic meanwhile, also without a takeover.
func TestK22_RoleThatCameBackDoesNotRepeatWhatIsThere(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	mine, other := r.msg(), r.msg()
	r.insert(t, outbox.Msg, 1)
	require.Equal(t, drain.Next{}, r.run(t, mine))
	r.take(t, 1, "b")
	r.insert(t, outbox.Msg, 2)
	r.topic.Deaf(true)
	require.Positive(t, r.step(t, other).Wait)
	r.topic.Deaf(false)
	r.take(t, 1, "a again")
	require.Equal(t, drain.Next{}, r.run(t, mine))
	require.Equal(t, 2, r.topic.Sends())
	require.Equal(t, repeat("SENT", 2), r.column(t, "state"))
}

// What an operator puts back lies below where the reading of a backlog has come to; it is seen all the same.
func TestMsgSeesWhatCameBack(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2, 3)
	_, err := r.pool.Exec(t.Context(), "UPDATE msg_event SET state = 'DEAD', attempts = 5 WHERE event_id = (SELECT min(event_id) FROM msg_event)")
	require.NoError(t, err)
	m := r.msg()
	r.run(t, m)
	require.Equal(t, []string{"DEAD", "SENT", "SENT"}, r.column(t, "state"))
	_, err = r.pool.Exec(t.Context(), "UPDATE msg_event SET state = 'PENDING', attempts = 0 WHERE state = 'DEAD'")
	require.NoError(t, err)
	r.insert(t, outbox.Msg, 4)
	r.run(t, m)
	require.Equal(t, []string{"PENDING", "SENT", "SENT", "SENT"}, r.column(t, "state"), "the backlog is not read from its start each time")
	r.pass(time.Second)
	r.run(t, m)
	require.Equal(t, repeat("SENT", 4), r.column(t, "state"))
}

// Marks need not have reached the disk when PostgreSQL crashes: their events wait again, and are found in the topic.
func TestMsgDoesNotRepeatWhatLostItsMark(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleMsg)
	r.insert(t, outbox.Msg, 1, 2, 3)
	m := r.msg()
	r.run(t, m)
	want := r.sent()
	_, err := r.pool.Exec(t.Context(), "UPDATE msg_event SET state = 'PENDING', sent_at = NULL, kafka_partition = NULL, kafka_offset = NULL")
	require.NoError(t, err)
	r.pass(time.Second)
	r.run(t, m)
	require.Equal(t, want, r.sent())
	require.Equal(t, repeat("SENT", 3), r.column(t, "state"))
}
