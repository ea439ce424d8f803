package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/deploy/systemtest/rig"
	"msgexchange/jobs"
	"msgexchange/workers"
	"msgexchange/workers/maintenance"
)

// archive measures what moving millions of finished messages out of the working tables costs those that flow meanwhile (K10): the
// same steady rate before it, beside it and after it.
func archive(ctx context.Context, b *bench) error {
	pool, dsn, err := b.fresh(ctx, "archive")
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := b.fillFinished(ctx, pool, b.archived); err != nil {
		return err
	}
	return b.with(ctx, func(*rig.Pod) error {
		if _, err := b.put(ctx, schedules(b.next(), backlogFlights)); err != nil {
			return err
		}
		if err := b.quiet(ctx, pool); err != nil {
			return err
		}
		calm, bareCalm, err := b.steadily(ctx)
		if err != nil {
			return err
		}
		if err := orderArchive(ctx, pool); err != nil {
			return err
		}
		if err := b.until(ctx, time.Minute, func() (ok bool, err error) {
			err = pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM proc_state_hst)").Scan(&ok)
			return ok, err
		}); err != nil {
			return fmt.Errorf("the archive does not begin: %w", err)
		}
		before, at := b.archived, time.Now()
		busy, bareBusy, err := b.steadily(ctx)
		if err != nil {
			return err
		}
		left, err := finished(ctx, pool)
		if err != nil {
			return err
		}
		rate := float64(before-left) / time.Since(at).Seconds()
		b.say("%d of %d messages archived meanwhile, %d left", before-left, before, left)
		if err := b.stopArchive(ctx, pool); err != nil {
			return fmt.Errorf("stop the archive: %w", err)
		}
		again, bareAgain, err := b.steadily(ctx)
		if err != nil {
			return err
		}
		b.compareArchive(left, rate, append(calm, again...), busy, append(bareCalm, bareAgain...), bareBusy)
		return nil
	}, "MSGX_PG_DSN="+dsn)
}

// compareArchive adds the lines of the table.
func (b *bench) compareArchive(left int, rate float64, calm, busy, bareCalm, bareBusy []time.Duration) {
	ratio := func(part float64, busy, calm []time.Duration) float64 {
		return quantile(busy, part).Seconds() / quantile(calm, part).Seconds()
	}
	const goal = 2
	what := fmt.Sprintf("%d messages/s while %d finished ones are archived, p99", perSecond, b.archived)
	if left == 0 {
		what += " (the archive ended before the measurement)"
	}
	p99 := ratio(0.99, busy, calm)
	b.table.limit("the archive meanwhile", "%.0f messages/s", rate)
	b.table.goal(what, p99 <= goal, "≤ 2 × without", "%.1f ms = %.2f × without (by hand %.2f ×)", ms(quantile(busy, 0.99)), p99, ratio(0.99, bareBusy, bareCalm))
	b.table.limit("the same, p50", "%.1f ms = %.2f × without (by hand %.2f ×)", ms(quantile(busy, 0.5)), ratio(0.5, busy, calm), ratio(0.5, bareBusy, bareCalm))
}

// fillFinished makes a lane that has long finished so many messages, marked and, one in four, with an event sent, and lets the
// mailbox go on with the ids behind them.
func (b *bench) fillFinished(ctx context.Context, pool *pgxpool.Pool, rows int) error {
	var top int
	if err := b.world.Mailbox.DB().QueryRowContext(ctx, "SELECT coalesce(max(CMINMSGS_ID), 0) FROM cminmsgs").Scan(&top); err != nil {
		return err
	}
	top = max(top, rows)
	if _, err := b.world.Mailbox.DB().ExecContext(ctx, fmt.Sprintf("ALTER TABLE cminmsgs AUTO_INCREMENT = %d", top+1)); err != nil {
		return err
	}
	const chunk = 500_000
	for at := 0; at < rows; at += chunk {
		for _, statement := range []string{
			`INSERT INTO proc_state (msg_id, state, identity_key, attempts, processing_started_at, received_at, created_at, updated_at, finished_at,
			                         content_hash, sndr, type, styp, seqn, dttm, backfill_at)
			 SELECT n, 'SUCCEEDED', 'AODB|FLOP|STND|' || n, 1, d.at, d.at, d.at, d.at, d.at,
			        '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'AODB', 'FLOP', 'STND', n, d.at, d.at
			 FROM (SELECT n, now() - interval '3 days' + n * interval '10 ms' AS at FROM generate_series($1::bigint, $2::bigint) n) d`,
			`INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, sndr, payload, state, received_at, created_at, sent_at)
			 SELECT 'KAFKA:msg', n, n, n::text, 'UPSERT', 1, 'FLOP-STND', 'AODB', '{"fields":{"stnd":"201"}}', 'SENT', d.at, d.at, d.at
			 FROM (SELECT n, now() - interval '3 days' + n * interval '10 ms' AS at FROM generate_series($1::bigint, $2::bigint) n WHERE n % 4 = 0) d`,
		} {
			if _, err := pool.Exec(ctx, statement, at+1, min(at+chunk, rows)); err != nil {
				return err
			}
		}
	}
	for _, statement := range []string{
		// Events of the other measurements are in the same topics: theirs are the smaller ids.
		"SELECT setval('msg_event_event_id_seq', 1000000000)",
		fmt.Sprintf("INSERT INTO inbox_cursor (lane, committed_up_to, seeded_at, updated_at) VALUES ('%s', %d, now(), now())", lane, top),
		// What was filled in reaches the disk before anything is measured: in a system it was written days ago.
		"VACUUM ANALYZE proc_state", "VACUUM ANALYZE msg_event", "CHECKPOINT",
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// finished counts the old messages that are still in the working table.
func finished(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	err = pool.QueryRow(ctx, "SELECT count(*) FROM proc_state WHERE coalesce(received_at, created_at) < now() - interval '24 hours'").Scan(&n)
	return n, err
}

// quiet waits until nothing of the lane waits any more.
func (b *bench) quiet(ctx context.Context, pool *pgxpool.Pool) error {
	const done = `SELECT NOT EXISTS (SELECT 1 FROM proc_state WHERE state IN ('PENDING', 'FAILED')) AND EXISTS (SELECT 1 FROM flight_schd)
		AND NOT EXISTS (SELECT 1 FROM msg_event WHERE state = 'PENDING')`
	return b.until(ctx, time.Minute, func() (ok bool, err error) {
		err = pool.QueryRow(ctx, done).Scan(&ok)
		return ok, err
	})
}

// orderArchive asks the pod for a run now.
func orderArchive(ctx context.Context, pool *pgxpool.Pool) error {
	client, err := workers.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	_, err = client.Insert(ctx, jobs.Maintain{Task: maintenance.ArchiveTask}, nil)
	return err
}

// stopArchive has no more jobs of maintenance taken up, and waits until the one at work has had its share of the run.
func (b *bench) stopArchive(ctx context.Context, pool *pgxpool.Pool) error {
	client, err := workers.NewInserter(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := client.QueuePause(ctx, jobs.QueueMaintenance, nil); err != nil {
		return err
	}
	return b.until(ctx, 2*time.Minute, func() (ok bool, err error) {
		err = pool.QueryRow(ctx, "SELECT NOT EXISTS (SELECT 1 FROM river_job WHERE kind = $1 AND state = 'running')", jobs.Maintain{}.Kind()).Scan(&ok)
		return ok, err
	})
}
