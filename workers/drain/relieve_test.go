package drain_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/jobs"
	"msgexchange/workers/drain"
)

// seat is one pod's place in the role, with a way to the neighbour that can be cut.
type seat struct {
	*drain.Place
	cut      atomic.Bool
	asked    atomic.Int64
	fetching atomic.Bool
}

func newSeat() *seat {
	s := &seat{}
	s.fetching.Store(true)
	s.Place = drain.NewPlace(jobs.RoleBackfill, drain.Needs{Name: "neighbour", Reach: s.reach}, s, slog.New(slog.DiscardHandler))
	return s
}

func (s *seat) reach(context.Context) error {
	defer s.asked.Add(1)
	if s.cut.Load() {
		return errors.New("no way")
	}
	return nil
}

func (s *seat) StopFetching(jobs.Role) { s.fetching.Store(false) }

func (s *seat) StartFetching(jobs.Role) error { s.fetching.Store(true); return nil }

// clock is moved by hand. Safe for concurrent use.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// eye is the watcher of the pod named, whose place in the role is s.
func (r *rig) eye(pod string, s *seat, c *clock) *drain.Watcher {
	w := r.watcher(c.now)
	w.Pod, w.Places = pod, map[jobs.Role]*drain.Place{jobs.RoleBackfill: s.Place}
	return w
}

// wakes are the role's wake-ups that nobody has taken, by epoch.
func (r *rig) wakes(t *testing.T, epoch int64) (n int) {
	t.Helper()
	require.NoError(t, r.pool.QueryRow(t.Context(),
		"SELECT count(*) FROM river_job WHERE kind = 'backfill' AND state = 'available' AND (args->>'epoch')::bigint = $1", epoch).Scan(&n))
	return n
}

// offered leaves the role as a pod does that offered it and was killed in the same moment: it has work and a holder, who says that
// he cannot reach the neighbour and will never say anything again.
func (r *rig) offered(t *testing.T) (dead *lease.Fence) {
	t.Helper()
	require.NoError(t, r.enqueue(t.Context()))
	dead, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: 1}, "a/1.1")
	require.NoError(t, err)
	_, err = r.pool.Exec(t.Context(), "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{a}'")
	require.NoError(t, err)
	require.NoError(t, dead.Beat(t.Context(), true))
	require.True(t, r.status(t).Troubled)
	return dead
}

// requireOneOwner sees that the role is its next owner's alone: one wake-up, no offer left, who was there before refused, also when
// River rescues his job; and that the work gets done.
func (r *rig) requireOneOwner(t *testing.T, epoch int64, before *lease.Fence) {
	t.Helper()
	s := r.status(t)
	require.Equal(t, epoch, s.Epoch)
	require.False(t, s.Open())
	require.False(t, s.Troubled)
	require.Equal(t, 1, r.wakes(t, epoch))
	require.ErrorIs(t, before.Tx(t.Context(), func(pgx.Tx) error { return errors.New("must not run") }), lease.ErrFenced)
	_, err := lease.Take(t.Context(), r.pool, jobs.RoleBackfill, jobs.Wake{Lane: lane, Epoch: before.Epoch()}, "a/1.2")
	require.ErrorIs(t, err, lease.ErrFenced)
	require.NoError(t, before.Beat(t.Context(), true))
	require.False(t, r.status(t).Troubled, "who was there before offers nothing any more")

	j, done := job(r, s, "b/2.1")
	require.NoError(t, r.drain(hasty()).Run(t.Context(), j))
	require.True(t, done.Load())
	require.Zero(t, r.undone(t))
}

// O4: the pod that offered the role is killed before anybody took it. Of two pods that reach the neighbour one gives it a new epoch.
func TestOfferOfAPodThatIsKilled(t *testing.T) {
	t.Parallel()
	r := setup(t)
	dead := r.offered(t)
	c := &clock{at: time.Now()}
	watchers := []*drain.Watcher{r.eye("b", newSeat(), c), r.eye("c", newSeat(), c)}
	require.Eventually(t, func() bool {
		for _, w := range watchers {
			require.NoError(t, w.Look(t.Context()))
		}
		return r.status(t).Epoch > 1
	}, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, w := range watchers { // what they began ends
		require.NoError(t, w.Run(ctx))
	}
	r.requireOneOwner(t, 2, dead)
}

// O4: the pod that offered the role is killed and nobody reaches the neighbour. The role is not taken for the offer, and after the
// silence of any other that dies.
func TestOfferOfAPodThatIsKilledWithTheNeighbourAwayForAll(t *testing.T) {
	t.Parallel()
	r := setup(t)
	dead := r.offered(t)
	c, b := &clock{at: time.Now()}, newSeat()
	b.cut.Store(true)
	w := r.eye("b", b, c)
	require.Eventually(t, func() bool {
		require.NoError(t, w.Look(t.Context()))
		return b.asked.Load() > 1
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, int64(1), r.status(t).Epoch)
	c.move(drain.Defaults().Takeover)
	require.NoError(t, w.Look(t.Context()))
	r.requireOneOwner(t, 2, dead)
}

// inVain is a role that gets nothing out of its neighbour.
type inVain struct{ *counting }

func (inVain) Step(ctx context.Context, f *lease.Fence) (drain.Next, error) {
	err := f.Tx(ctx, func(pgx.Tx) error { return nil })
	return drain.Next{Wait: time.Millisecond, Away: true}, err
}

// O4: the pod that takes an offered role is killed before it works it. Who offered it stays out no longer than the takeover takes,
// though the neighbour does not answer him.
func TestTakerOfAnOfferIsKilled(t *testing.T) {
	t.Parallel()
	r := setup(t)
	require.NoError(t, r.enqueue(t.Context()))
	a := newSeat()
	a.cut.Store(true)
	config := drain.Defaults()
	config.Beat, config.Patience = 5*time.Millisecond, 10*time.Millisecond
	d := r.drain(config)
	d.Work, d.Place = inVain{r.role}, a.Place
	j, _ := job(r, r.status(t), "a/1.1")
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.WithoutCancel(t.Context()), j) }()
	require.Eventually(t, func() bool { return r.status(t).Troubled }, 10*time.Second, time.Millisecond)
	require.False(t, a.fetching.Load())

	// The taker's last deed. It leaves a role alone whose holder has a transaction open, and comes again.
	require.Eventually(t, func() (ok bool) {
		require.NoError(t, db.InTx(t.Context(), r.pool, func(tx pgx.Tx) (err error) {
			_, ok, err = lease.Relieve(t.Context(), tx, lane, r.status(t))
			return err
		}))
		return ok
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, <-ended)

	c := &clock{at: time.Now()}
	w := r.eye("a", a, c)
	require.NoError(t, w.Look(t.Context()))
	c.move(drain.Defaults().Takeover - time.Second)
	require.NoError(t, w.Look(t.Context()))
	require.False(t, a.fetching.Load(), "the taker may be about to begin")
	c.move(time.Second)
	require.NoError(t, w.Look(t.Context()))
	require.True(t, a.fetching.Load(), "nobody else works the role")
	require.Equal(t, int64(3), r.status(t).Epoch)
	require.Equal(t, 1, r.wakes(t, 3))
}
