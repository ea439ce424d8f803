package workers_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/workers"
	"msgexchange/workers/drain"
	"msgexchange/workers/maintenance"
)

// carrier carries rows of a table to a neighbour that can be away for this pod alone.
type carrier struct {
	pool *pgxpool.Pool
	name string
	away atomic.Bool
}

func (c *carrier) reach(context.Context) error {
	if c.away.Load() {
		return errors.New("no way")
	}
	return nil
}

func (c *carrier) Pending(ctx context.Context, q db.Querier) (pending bool, err error) {
	err = q.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM work WHERE carried_by IS NULL)").Scan(&pending)
	return pending, err
}

func (c *carrier) Step(ctx context.Context, f *lease.Fence) (next drain.Next, err error) {
	if pending, err := c.Pending(ctx, c.pool); err != nil || !pending {
		return drain.Next{}, err
	}
	if c.away.Load() {
		return drain.Next{Wait: 10 * time.Millisecond, Away: true}, nil
	}
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE work SET carried_by = $1 WHERE carried_by IS NULL", c.name)
		return err
	})
	return drain.Next{Again: true}, err
}

// log keeps what pods tell. Safe for concurrent use.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) count(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), `msg="`+event+`"`)
}

// site is a database with work for carriers.
type site struct {
	t     *testing.T
	pool  *pgxpool.Pool
	log   log
	waker *drain.Waker
	rows  int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, pool: dbtest.New(t)}
	_, err := s.pool.Exec(t.Context(), "CREATE TABLE work (id bigserial PRIMARY KEY, carried_by text)")
	require.NoError(t, err)
	inserter, err := workers.NewInserter(s.pool, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s.waker = drain.NewWaker("default", inserter)
	return s
}

// pod runs a carrier as a pod of its own, which loses patience soon; stop ends it.
func (s *site) pod(name string) (c *carrier, stop func()) {
	s.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	inserter, err := workers.NewInserter(s.pool, quiet)
	require.NoError(s.t, err)
	keeper, err := maintenance.New(maintenance.Deps{Pool: s.pool, Store: store.New(time.UTC), Jobs: inserter, Zone: time.UTC, Log: quiet, Now: time.Now})
	require.NoError(s.t, err)
	c = &carrier{pool: s.pool, name: name}
	work := map[jobs.Role]drain.Role{}
	for _, r := range jobs.AllRoles() {
		work[r] = nothing{}
	}
	work[jobs.RoleMsg] = c
	config := drain.Defaults()
	config.Beat, config.Patience, config.RunFor, config.Takeover = 50*time.Millisecond, 300*time.Millisecond, 4*time.Second, 3*time.Second
	pod, err := workers.New(workers.Deps{
		Name: name, Lane: "default", Pool: s.pool, Waker: drain.NewWaker("default", inserter), Work: work, Roles: []jobs.Role{jobs.RoleMsg},
		Needs:  map[jobs.Role]drain.Needs{jobs.RoleMsg: {Name: "neighbour", Reach: c.reach}},
		Keeper: keeper, Drain: config, Grace: 10 * time.Second, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- pod.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(s.t, <-ended) })
	s.t.Cleanup(func() {
		stop()
		if s.t.Failed() {
			s.t.Log(s.log.b.String())
		}
	})
	return c, stop
}

func (s *site) put() {
	s.t.Helper()
	s.rows++
	require.NoError(s.t, db.InTx(s.t.Context(), s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(s.t.Context(), "INSERT INTO work DEFAULT VALUES"); err != nil {
			return err
		}
		return s.waker.Wake(s.t.Context(), tx, jobs.RoleMsg)
	}))
}

// carried waits until everything was carried, and says by whom the last row was.
func (s *site) carried() (by string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var waiting int
		require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM work WHERE carried_by IS NULL").Scan(&waiting))
		return waiting == 0
	}, 60*time.Second, 10*time.Millisecond)
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT carried_by FROM work WHERE id = $1", s.rows).Scan(&by))
	return by
}

func (s *site) lease() lease.Status {
	s.t.Helper()
	all, err := lease.Read(s.t.Context(), s.pool, "default", []jobs.Role{jobs.RoleMsg})
	require.NoError(s.t, err)
	if len(all) == 0 {
		return lease.Status{} // the pod has not begun
	}
	return all[0]
}

func (s *site) until(what string, ok func(lease.Status) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return ok(s.lease()) }, 60*time.Second, 10*time.Millisecond, what)
}

// A pod that alone cannot reach the neighbour loses the role to one that can, once, and leaves it alone until it can again.
func TestRoleGoesToWhoReachesTheNeighbour(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, _ := s.pod("a")
	s.until("a has begun", func(l lease.Status) bool { return l.Epoch > 0 })
	a.away.Store(true)
	s.put()
	s.until("a holds the role in vain and says so", func(l lease.Status) bool { return strings.HasPrefix(l.Holder, "a/") && l.Troubled })
	before := s.lease().Epoch
	b, _ := s.pod("b")
	require.Equal(t, "b", s.carried())
	require.Equal(t, before+1, s.lease().Epoch)
	for range 10 { // each finds the drain closed, so that its wake-up is anybody's who takes wake-ups
		s.until("the drain closes", func(l lease.Status) bool { return !l.Open() })
		s.put()
		require.Equal(t, "b", s.carried())
	}
	require.Equal(t, before+1, s.lease().Epoch, "no more than once")

	a.away.Store(false)
	require.Eventually(t, func() bool { return s.log.count("neighbour reached") == 1 }, 60*time.Second, 10*time.Millisecond)
	b.away.Store(true)
	s.put()
	require.Equal(t, "a", s.carried())
}

// A neighbour that is away for everybody is waited for by whoever holds the role: no epoch, no storm of jobs or lines, and it
// goes on when the neighbour is back.
func TestNeighbourAwayForAll(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, _ := s.pod("a")
	b, _ := s.pod("b")
	s.until("the pods have begun", func(l lease.Status) bool { return l.Epoch > 0 && !l.Open() })
	before := s.lease().Epoch
	a.away.Store(true)
	b.away.Store(true)
	s.put()
	turns := map[string]bool{}
	s.until("several turns are over", func(l lease.Status) bool {
		if l.Open() {
			turns[l.Holder] = true
		}
		return len(turns) > 3
	})
	require.Equal(t, before, s.lease().Epoch)
	var jobsMade int
	require.NoError(t, s.pool.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE kind = 'deliver_msg'").Scan(&jobsMade))
	require.LessOrEqual(t, jobsMade, len(turns)+3, "a turn is one job")
	require.LessOrEqual(t, s.log.count("role offered"), 2, "each pod tells it once")
	a.away.Store(false)
	b.away.Store(false)
	s.carried()
	require.LessOrEqual(t, s.lease().Epoch, before+1)
}

// A pod that lost the role has it again when nobody else works it, though it cannot reach the neighbour even then.
func TestRoleComesBackToTheLastPod(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, _ := s.pod("a")
	s.until("a has begun", func(l lease.Status) bool { return l.Epoch > 0 })
	a.away.Store(true)
	s.put()
	s.until("a offers the role", func(l lease.Status) bool { return l.Troubled })
	_, stop := s.pod("b")
	require.Equal(t, "b", s.carried())
	stop()
	s.put()
	s.until("a holds it again", func(l lease.Status) bool { return strings.HasPrefix(l.Holder, "a/") })
	a.away.Store(false)
	require.Equal(t, "a", s.carried())
}
