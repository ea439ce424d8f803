package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db/dbtest"
	"msgexchange/db/mailbox"
	"msgexchange/db/store"
	"msgexchange/deploy/doctor"
	"msgexchange/jobs/fault"
)

// took makes the lane have taken messages over, with the times of theirs.
func (w *world) took(t *testing.T, received map[int64]time.Time) {
	t.Helper()
	for id, at := range received {
		_, err := w.Pool.Exec(t.Context(), "INSERT INTO proc_state (msg_id, received_at, created_at, updated_at) VALUES ($1, $2, $2, $2)", id, at)
		require.NoError(t, err)
		_, err = w.Pool.Exec(t.Context(), "UPDATE inbox_cursor SET committed_up_to = greatest(committed_up_to, $1)", id)
		require.NoError(t, err)
	}
}

func (w *world) home(t *testing.T) string {
	t.Helper()
	home, err := w.Lane.Store.Home(t.Context(), w.Pool, w.Lane.Name)
	require.NoError(t, err)
	return home.Mailbox
}

// The first mailbox is recorded; the same one is known again; another one is refused, nothing of it used.
func TestAnotherMailboxIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, w.Mailbox.Ping(t.Context()))
	first := w.home(t)
	require.Contains(t, first, ".cminmsgs")
	w.use(t, w.dsn)
	require.NoError(t, w.Mailbox.Ping(t.Context()))

	other := dbtest.Mailbox(t)
	w.use(t, other)
	err := w.Mailbox.Ping(t.Context())
	require.ErrorIs(t, err, doctor.ErrOtherMailbox)
	require.Equal(t, fault.Outage, fault.Of(err), "it spends nobody's attempts")
	_, err = w.Mailbox.After(t.Context(), 0, 10)
	require.ErrorIs(t, err, doctor.ErrOtherMailbox)
	_, err = w.Mailbox.Insert(t.Context(), "x", time.Now())
	require.ErrorIs(t, err, doctor.ErrOtherMailbox)
	require.Equal(t, first, w.home(t))
	require.Equal(t, doctor.Refuse, w.finding(t, "mailbox").Verdict)
}

// An operator moves a lane on purpose by naming the mailbox.
func TestExpectedMailboxIsTaken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, w.Mailbox.Ping(t.Context()))
	var meant mailbox.Identity
	stranger := w.Lane
	err := stranger.Recognise(t.Context(), "elsewhere/airport.CMINMSGS", nothing)
	require.ErrorContains(t, err, "mailbox.identity=elsewhere/airport.CMINMSGS")
	meant = "elsewhere/airport.CMINMSGS"
	stranger.Expect, stranger.LookOnly = meant, true
	require.NoError(t, stranger.Recognise(t.Context(), meant, nothing))
	require.NotEqual(t, string(meant), w.home(t), "doctor records nothing")
	stranger.LookOnly = false
	require.NoError(t, stranger.Recognise(t.Context(), meant, nothing))
	require.Equal(t, string(meant), w.home(t))
}

func nothing(context.Context, []int64) (map[int64]time.Time, error) { return nil, nil }

// After a fail-over the server is another one and the rows are the same: the lane goes on by itself. One row that differs
// is enough to refuse.
func TestFailOverIsRecognised(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		theirs map[int64]time.Time
		same   bool
	}{
		"same":      {map[int64]time.Time{1: at, 2: at.Add(time.Second)}, true},
		"cleaned":   {map[int64]time.Time{2: at.Add(time.Second)}, true},
		"empty":     {nil, false},
		"other row": {map[int64]time.Time{1: at, 2: at.Add(time.Minute)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			require.NoError(t, w.Mailbox.Ping(t.Context()))
			w.took(t, map[int64]time.Time{1: at, 2: at.Add(time.Second)})
			err := w.Lane.Recognise(t.Context(), "replica/airport.CMINMSGS", func(_ context.Context, ids []int64) (map[int64]time.Time, error) {
				require.Len(t, ids, 2)
				return c.theirs, nil
			})
			if c.same {
				require.NoError(t, err)
				require.Equal(t, "replica/airport.CMINMSGS", w.home(t))
				return
			}
			require.ErrorIs(t, err, doctor.ErrOtherMailbox)
		})
	}
}

// A pod whose lane is misnamed would work on the other lane's flights, beside its workers: the database admits one.
func TestLanesDoNotMix(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, w.Lane.ClaimMode(t.Context()))
	other := w.Lane
	other.Name = "misnamed"
	require.ErrorIs(t, other.ClaimMode(t.Context()), store.ErrOtherLane)
	require.NoError(t, w.Lane.ClaimMode(t.Context()), "the lane that was first goes on")
}

// Pods that start in the same moment on a new database all begin (K05): none takes the row that another is making for another lane's.
func TestLaneOpenedTogether(t *testing.T) {
	t.Parallel()
	const rounds, pods = 60, 6
	w := setup(t)
	for range rounds {
		_, err := w.Lane.Pool.Exec(t.Context(), "DELETE FROM inbox_cursor")
		require.NoError(t, err)
		start := make(chan struct{})
		var all errgroup.Group
		for range pods {
			all.Go(func() error {
				<-start
				return w.Lane.ClaimMode(t.Context())
			})
		}
		close(start)
		require.NoError(t, all.Wait())
	}
}

// A shadow never works on the database of a live system, nor the other way round.
func TestModesDoNotMix(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, w.Lane.ClaimMode(t.Context()))
	other := w.Lane
	other.Mode = "shadow"
	require.ErrorIs(t, other.ClaimMode(t.Context()), doctor.ErrOtherMode)
}

// Of two pods with different topics on one database the first is right, and the other finds out before it sends anything. Topics
// that are renamed on purpose are taken over by who says what they were called.
func TestTopicsDoNotMix(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, w.Lane.ClaimTopics(t.Context()))
	require.NoError(t, w.Lane.ClaimTopics(t.Context()))
	first := w.Lane
	w.Lane.Topics = "b.msg b.schd"
	require.ErrorIs(t, w.Lane.ClaimTopics(t.Context()), doctor.ErrOtherTopics)
	require.ErrorContains(t, w.Lane.ClaimTopics(t.Context()), `kafka.renamed-from="msg schd"`)
	require.Equal(t, doctor.Refuse, w.finding(t, "lane topics").Verdict)

	w.Lane.RenamedFrom = "msg sched"
	require.ErrorIs(t, w.Lane.ClaimTopics(t.Context()), doctor.ErrOtherTopics, "not what they were called")
	w.Lane.RenamedFrom = first.Topics
	require.Equal(t, doctor.OK, w.finding(t, "lane topics").Verdict)
	require.NoError(t, first.ClaimTopics(t.Context()), "doctor records nothing")
	require.NoError(t, w.Lane.ClaimTopics(t.Context()))
	require.NoError(t, w.Lane.ClaimTopics(t.Context()), "the setting may stay")
	require.ErrorIs(t, first.ClaimTopics(t.Context()), doctor.ErrOtherTopics)
}

// doctor says whose the database is.
func TestForeignLaneIsFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.Equal(t, doctor.OK, w.finding(t, "lane name").Verdict)
	w.Lane.Name = "misnamed"
	f := w.finding(t, "lane name")
	require.Equal(t, doctor.Refuse, f.Verdict)
	require.Contains(t, f.Found, "belongs to lane default, not misnamed")
}
