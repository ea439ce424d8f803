//go:build demo

package demo

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db/mailbox"
	"msgexchange/deploy/simulator"
	"msgexchange/jobs/backfill"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
)

// setup starts the demo's mailbox. Tests that do never run in parallel: two engines made at once race in the library, and a
// demo has one.
func setup(t *testing.T) (*mailboxServer, *mailbox.Mailbox) {
	t.Helper()
	s, err := startMailbox(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	box, err := mailbox.Open(mailbox.Config{DSN: s.dsn, Zone: time.FixedZone("", 8*60*60)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return s, box
}

// TestMailbox_speaksWhatTheProductSends sends every statement of db/mailbox.
func TestMailbox_speaksWhatTheProductSends(t *testing.T) {
	s, box := setup(t)
	ctx := t.Context()
	require.NoError(t, box.Ping(ctx))
	at := time.Date(2026, 11, 30, 16, 30, 0, 0, time.UTC)
	for want := range int64(5) {
		id, err := box.Insert(ctx, "<MSG>机位</MSG>", at)
		require.NoError(t, err)
		require.Equal(t, want+1, id)
	}
	rows, err := box.After(ctx, 3, 10)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, int64(4), rows[0].ID)
	require.True(t, rows[0].ReceivedAt.Equal(at))

	rows, err = box.In(ctx, []inbox.Range{{First: 1, Last: 1}, {First: 4, Last: 9}}, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 4}, []int64{rows[0].ID, rows[1].ID})

	for m, err := range box.Texts(ctx, inbox.Range{First: 2, Last: 2}) {
		require.NoError(t, err)
		require.Equal(t, "<MSG>机位</MSG>", m.Text)
	}
	extent, step, err := box.Facts(ctx)
	require.NoError(t, err)
	require.Equal(t, inbox.Extent{Min: 1, Max: 5}, extent)
	require.Equal(t, int64(1), step)

	meta := message.Meta{SNDR: "AODB", TYPE: "FLOP", STYP: "PSDT", SEQN: 4711, DTTM: at}
	marks := []backfill.Mark{{ID: 2, Status: "PROCESSED", Meta: meta}, {ID: 3, Status: "OTHER"}, {ID: 77}}
	for _, want := range [][]backfill.Result{
		{backfill.Written, backfill.Written, backfill.Missing}, {backfill.Already, backfill.Already, backfill.Missing},
	} {
		answers, err := box.Mark(ctx, marks, at)
		require.NoError(t, err)
		var got []backfill.Result
		for _, a := range answers {
			got = append(got, a.Result)
		}
		require.Equal(t, want, got)
	}
	all, marked := s.marked()
	require.Equal(t, []int{5, 2}, []int{all, marked})
	var status string
	var seqn sql.NullInt64
	require.NoError(t, box.DB().QueryRowContext(ctx,
		"SELECT CMINMSGS_STATUS, CMINMSGS_SUBSYSTEM_SEQUENCE FROM CMINMSGS WHERE CMINMSGS_ID = 2").Scan(&status, &seqn))
	require.Equal(t, "PROCESSED", status)
	require.Equal(t, int64(4711), seqn.Int64)
}

func TestMailbox_requests(t *testing.T) {
	_, box := setup(t)
	res, err := box.DB().ExecContext(t.Context(), "INSERT INTO COUTMSGS (COUTMSGS_CLOB_MSG, COUTMSGS_DATE_INSERTED, ROUTINGID) VALUES ('<MSG/>', NOW(), 'R')")
	require.NoError(t, err)
	id, err := res.LastInsertId()
	require.NoError(t, err)
	require.Equal(t, int64(1), id)
	var errorColumn int
	require.NoError(t, box.DB().QueryRowContext(t.Context(), "SELECT COUTMSGS_ERROR FROM coutmsgs WHERE COUTMSGS_ID = 1").Scan(&errorColumn))
	require.Zero(t, errorColumn)
}

// A request goes into the empty table, and only once.
func TestMailbox_sendsOnce(t *testing.T) {
	_, box := setup(t)
	for range 2 {
		id, _, err := box.SendRequest(t.Context(), "<MSG>one</MSG>", "R")
		require.NoError(t, err)
		require.Equal(t, int64(1), id)
	}
	taken, err := box.Taken(t.Context(), []int64{1})
	require.NoError(t, err)
	require.Empty(t, taken)
}

// A drill holds a row as an open transaction would: it is not marked before the drill's end.
func TestMailbox_heldByADrill(t *testing.T) {
	s, box := setup(t)
	said := make(chan string, 10)
	drill := simulator.Drill{DB: box.DB(), Table: s.in.name, Zone: time.UTC, Airport: simulator.Options{Day: time.Now()}, Say: func(line string) { said <- line }}
	ctx, end := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return drill.Run(ctx, simulator.Unmarked) })
	require.Equal(t, "Row 1 is held by an open transaction.", <-said)
	mark := []backfill.Mark{{ID: 1, Status: "PROCESSED"}}
	got, err := box.Mark(t.Context(), mark, time.Now())
	require.NoError(t, err)
	require.Equal(t, backfill.Transient, got[0].Result)
	end()
	require.NoError(t, g.Wait())
	got, err = box.Mark(t.Context(), mark, time.Now())
	require.NoError(t, err)
	require.Equal(t, backfill.Written, got[0].Result)
}

// While a drill keeps the transport from working, requests wait.
func TestMailbox_transportKeptFromWorking(t *testing.T) {
	s, box := setup(t)
	_, _, err := box.SendRequest(t.Context(), "<MSG>one</MSG>", "R")
	require.NoError(t, err)
	transport := simulator.NewRequests(box.DB(), s.out.name, time.UTC)
	said := make(chan string, 10)
	drill := simulator.Drill{DB: box.DB(), Table: s.in.name, Say: func(line string) { said <- line }}
	ctx, end := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return drill.Run(ctx, simulator.ExpiredRequest) })
	<-said
	texts, err := transport.Take(t.Context(), time.Now())
	require.NoError(t, err)
	require.Empty(t, texts)
	end()
	require.NoError(t, g.Wait())
	texts, err = transport.Take(t.Context(), time.Now())
	require.NoError(t, err)
	require.Len(t, texts, 1)
}

// TestMailbox_losesNothing lets writers and markers work at the same time.
func TestMailbox_losesNothing(t *testing.T) {
	s, box := setup(t)
	const writers, each = 3, 60
	ids := make(chan int64, writers*each)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				id, err := box.Insert(t.Context(), "x", time.Now())
				if err != nil {
					t.Error(err)
				}
				ids <- id
			}
		})
	}
	var seen []int64
	for range writers * each {
		id := <-ids
		seen = append(seen, id)
		_, err := box.Mark(t.Context(), []backfill.Mark{{ID: id, Status: "PROCESSED"}}, time.Now())
		require.NoError(t, err)
	}
	wg.Wait()
	slices.Sort(seen)
	require.Len(t, slices.Compact(seen), writers*each)
	all, marked := s.marked()
	require.Equal(t, []int{writers * each, writers * each}, []int{all, marked})
}
