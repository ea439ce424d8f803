//go:build demo

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/db/dbserver"
	"msgexchange/db/mailbox"
	"msgexchange/deploy/config"
	"msgexchange/jobs/backfill"
)

// worker does what the workers do, as far as the accounts can see it, without looking at what the messages say.
type worker struct {
	*testing.T
	forget int64 // a message that it marks but does not process
}

func (w worker) serve(ctx context.Context, cfg config.Config, l net.Listener, _ *slog.Logger) (err error) {
	defer func() { err = errors.Join(err, l.Close()) }()
	pool, err := pgxpool.New(ctx, cfg.PG.DSN)
	require.NoError(w, err)
	defer pool.Close()
	box, err := mailbox.Open(mailbox.Config{DSN: cfg.Mailbox.DSN, Zone: time.UTC})
	require.NoError(w, err)
	defer func() { err = errors.Join(err, box.Close()) }()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(cfg.Kafka.Brokers...), kgo.DefaultProduceTopic(cfg.Kafka.MsgTopic()))
	require.NoError(w, err)
	defer kafka.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for after := int64(0); ctx.Err() == nil; <-tick.C {
		rows, err := box.After(ctx, after, 100)
		if err != nil {
			continue
		}
		for _, r := range rows {
			after = r.ID
			if r.ID != w.forget {
				w.process(ctx, pool, kafka, r.ID)
			}
			if _, err := box.Mark(ctx, []backfill.Mark{{ID: r.ID, Status: "PROCESSED"}}, time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w worker) process(ctx context.Context, pool *pgxpool.Pool, kafka *kgo.Client, id int64) {
	const (
		message = `INSERT INTO proc_state (msg_id, state, finished_at, created_at, updated_at) VALUES ($1, 'SUCCEEDED', $2, $2, $2)`
		event   = `INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, payload, state, created_at)
			VALUES ('KAFKA:msg', $1, 7, '7', 'UPSERT', 1, 'FLOP-STND', '{}', 'SENT', $2)`
	)
	_, err := pool.Exec(ctx, message, id, time.Now())
	require.NoError(w, err)
	require.NoError(w, kafka.ProduceSync(ctx, kgo.StringRecord("{}")).FirstErr())
	_, err = pool.Exec(ctx, event, id, time.Now())
	require.NoError(w, err)
}

func run(t *testing.T, o Options) (Summary, string, error) {
	t.Helper()
	var out, progress strings.Builder
	o.Out, o.Err, o.JSON = &out, &progress, true
	err := Run(t.Context(), o)
	if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	var s Summary
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal([]byte(out.String()), &s))
	}
	return s, progress.String(), err
}

// Not in parallel, see setup.
func TestRun_addsUp(t *testing.T) {
	s, progress, err := run(t, Options{Duration: 2 * time.Second, Rate: 30, Flights: 20, Seed: 3, Serve: worker{T: t}.serve})
	require.NoError(t, err, progress)
	n := s.Written.Rows
	require.Equal(t, 60, n)
	want := Summary{
		Written: s.Written, Mailbox: n, Messages: Messages{Succeeded: n}, Marked: n, Problems: []string{},
		Msg: Events{Created: n, Sent: n, Records: n},
	}
	require.Empty(t, cmp.Diff(want, s))
	require.Contains(t, progress, "Authorization: Bearer ")
	require.Regexp(t, `\n  \. /.*/demo\.sh\n  msgexchange simulate --fault poison `, progress)
}

// What the runbook's functions do, the demo's do too.
func TestShell_isTheRunbooks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	require.Contains(t, string(page), functions)
}

func TestRun_saysWhatDoesNotAddUp(t *testing.T) {
	stopped := errors.New("out of order")
	lossy := func(ctx context.Context, cfg config.Config, l net.Listener, log *slog.Logger) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		return errors.Join(worker{T: t, forget: 11}.serve(ctx, cfg, l, log), stopped)
	}
	_, progress, err := run(t, Options{Duration: time.Second, Rate: 20, Flights: 5, Serve: lossy})
	require.ErrorIs(t, err, stopped, progress)
}

func TestSummary_findsProblems(t *testing.T) {
	t.Parallel()
	s := Summary{Mailbox: 10, Messages: Messages{Succeeded: 7, Skipped: 1, Unfinished: 2}, Marked: 8, Msg: Events{Created: 5, Sent: 4, Dead: 1, Records: 3}}
	s.Written.Rows = 11
	s.check()
	require.Equal(t, []string{
		"11 messages were written, the mailbox has 10",
		"the mailbox has 10 messages, 8 are processed",
		"2 messages are unfinished",
		"the mailbox has 10 messages, 8 are marked",
		"msg: 5 events were created, 4 sent",
		"msg: 4 events were sent, the topic has 3 records",
	}, s.Problems)
	require.False(t, s.settled())
}

func TestStatusLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before := reading{at: at, watermark: 100}
	now := reading{at: at.Add(time.Second), written: 125, watermark: 124, head: 121, unfinished: 4, events: 300, waiting: 7, marked: 118}
	require.Equal(t, "6s/20s  written 125  processed 120 (20.0/s)  head 121  W 124  events 300, 7 waiting  marks 118",
		now.line(before, 6*time.Second, 20*time.Second))
}
