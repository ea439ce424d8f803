package deliver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/drain"
)

func TestSchdSendsTheNewestStateOfEachFlight(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	r.insert(t, outbox.Schd, 15, 16, 15, 15)
	s := r.schd()
	require.Equal(t, drain.Next{Wait: 3 * time.Second}, r.run(t, s))
	r.pass(2 * time.Second)
	r.insert(t, outbox.Schd, 16)
	require.Equal(t, drain.Next{Wait: time.Second}, r.run(t, s), "from the oldest")
	r.pass(time.Second)
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, []string{"SENT by 4", "SENT by 5", "SENT by 4", "SENT -", "SENT -"},
		r.column(t, "state || coalesce(' by ' || superseded_by, ' -')"))
	require.Equal(t, []string{"f", "f", "f", "t", "t"}, r.column(t, "CASE WHEN kafka_offset IS NULL THEN 'f' ELSE 't' END"))
	var all []int64
	for _, ids := range r.sent() {
		all = append(all, ids...)
	}
	slices.Sort(all)
	require.Equal(t, []int64{4, 5}, all)
}

func TestSchdFlushesAtOnceAtTheLimitAndCatchesUp(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	var flids []int64
	for i := range int64(1700) {
		flids = append(flids, i)
	}
	r.insert(t, outbox.Schd, flids...)
	s := r.schd()
	require.Equal(t, drain.Next{Wait: 3 * time.Second}, r.run(t, s), "the rest is less than a flush")
	require.Equal(t, append(repeat("SENT", 1500), repeat("PENDING", 200)...), r.column(t, "state"))
	r.pass(3 * time.Second)
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, repeat("SENT", 1700), r.column(t, "state"))
}

// The head rings for every batch; a look that found nothing to flush is not repeated for each.
func TestSchdGathers(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	s := r.schd()
	r.insert(t, outbox.Schd, 1)
	require.Equal(t, drain.Next{Wait: 3 * time.Second}, r.step(t, s))
	var flids []int64
	for i := range int64(500) {
		flids = append(flids, i)
	}
	r.insert(t, outbox.Schd, flids...)
	require.Equal(t, drain.Next{Wait: 100 * time.Millisecond}, r.step(t, s), "though the limit is reached")
	r.pass(100 * time.Millisecond)
	r.run(t, s)
	require.NotContains(t, r.column(t, "state"), "PENDING")
}

func TestSchdRefusedStateHoldsUpOnlyItsFlight(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	r.topic.Judge(refuse(outbox.Refused, 1))
	r.insert(t, outbox.Schd, 15, 15, 16, 17)
	r.topic.Judge(refuse(outbox.Refused, 2))
	r.pass(3 * time.Second)
	s := r.schd()
	require.Equal(t, drain.Next{Wait: time.Second}, r.run(t, s))
	require.Equal(t, []string{"PENDING 0", "PENDING 1", "SENT 0", "SENT 0"}, r.column(t, "state || ' ' || attempts"))
	r.insert(t, outbox.Schd, 15) // replaces both
	r.pass(3 * time.Second)
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, []string{"SENT by 5", "SENT by 5", "SENT -", "SENT -", "SENT -"},
		r.column(t, "state || coalesce(' by ' || superseded_by, ' -')"))
}

func TestSchdDeadStateIsClosedByANewerOne(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	r.insert(t, outbox.Schd, 15)
	r.topic.Judge(refuse(outbox.TooLarge, 1))
	r.pass(3 * time.Second)
	s := r.schd()
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, []string{"DEAD"}, r.column(t, "state"))
	r.insert(t, outbox.Schd, 15)
	r.pass(3 * time.Second)
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, []string{"SENT by 2", "SENT -"}, r.column(t, "state || coalesce(' by ' || superseded_by, ' -')"))
}

// Whatever fails in whatever order, no flight's state goes back in the topic, and in the end its newest is there.
func TestSchdNeverGoesBack(t *testing.T) {
	t.Parallel()
	r := setup(t, jobs.RoleSchd)
	rng := rand.New(rand.NewPCG(1, 2))
	r.topic.Judge(func(outbox.Record) outbox.Fate {
		return []outbox.Fate{outbox.Acked, outbox.Acked, outbox.Refused, outbox.Waiting}[rng.IntN(4)]
	})
	s := r.schd()
	for range 60 {
		r.topic.Away(rng.IntN(5) == 0)
		r.topic.Deaf(rng.IntN(5) == 0)
		r.insert(t, outbox.Schd, rng.Int64N(4), rng.Int64N(4))
		r.pass(time.Duration(rng.IntN(5)) * time.Second)
		if rng.IntN(6) == 0 {
			s = r.schd() // another worker
		}
		r.run(t, s)
	}
	r.topic.Judge(nil)
	r.topic.Away(false)
	r.topic.Deaf(false)
	r.insert(t, outbox.Schd, 0, 1, 2, 3)
	r.pass(time.Minute)
	require.Equal(t, drain.Next{}, r.run(t, s))
	require.Equal(t, repeat("SENT", 124), r.column(t, "state"))
	newest := make(map[string]int64)
	for _, records := range r.topic.Records() {
		for _, rec := range records {
			require.Greater(t, rec.EventID, newest[rec.Key], "flight %s", rec.Key)
			newest[rec.Key] = rec.EventID
		}
	}
	for flid := range 4 {
		require.Equal(t, int64(121+flid), newest[fmt.Sprint(flid)])
	}
}
