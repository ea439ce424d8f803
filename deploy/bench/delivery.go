package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/kafka"
)

// delivery measures how fast a backlog of events goes out in order, beside merely reading and marking the same rows in
// batches of the same size, in turns. The role runs in this process, alone.
func delivery(ctx context.Context, b *bench) error {
	pool, err := b.database(ctx, "delivery", 0)
	if err != nil {
		return err
	}
	defer pool.Close()
	o := &outgoing{bench: b, pool: pool, store: store.New(b.world.Zone)}
	if err := o.open(ctx); err != nil {
		return err
	}
	defer o.kafka.Close(context.WithoutCancel(ctx)) //nolint:errcheck // everything was acknowledged
	var mark, quick, slow []float64
	const most = 3 // the rows are made anew each time, which takes longer than what is measured
	for range min(b.rounds, most) {
		for _, m := range []struct {
			into *[]float64
			work func(ctx context.Context) error
		}{
			{&mark, o.mark},
			{&quick, o.deliver},
			{&slow, o.slowly},
		} {
			rate, err := o.rate(ctx, m.work)
			if err != nil {
				return err
			}
			*m.into = append(*m.into, rate)
		}
		n := len(mark) - 1
		b.say("read and mark %.0f, deliver %.0f, with a slow broker %.0f", mark[n], quick[n], slow[n])
	}
	fast, slowly := median(ratios(quick, mark)), median(ratios(slow, mark))
	b.table.limit("read and mark events, no Kafka", "%.0f events/s", median(mark))
	const goal, slowGoal = 0.5, 0.4
	b.table.goal(fmt.Sprintf("delivery of %d events, in order", b.events), fast >= goal, "≥ 0.5 of that", "%.0f events/s = %.2f of it", median(quick), fast)
	b.table.goal("the same, the broker takes 2 ms to answer", slowly >= slowGoal, "≥ 0.4 of that", "%.0f events/s = %.2f of it", median(slow), slowly)
	return nil
}

// eventsTopic is delivery's own: ids of another database's events would be taken for what is there already.
const eventsTopic = "events"

// outgoing is a backlog of events and the role that sends them.
type outgoing struct {
	*bench
	pool  *pgxpool.Pool
	store *store.Store
	kafka *kafka.Producer
	role  *deliver.Msg
	fence *lease.Fence
}

func (o *outgoing) open(ctx context.Context) error {
	silent := slog.New(slog.DiscardHandler)
	cfg := kafka.Defaults()
	cfg.Brokers = o.world.Broker.ListenAddrs()
	var err error
	if o.kafka, err = kafka.New(cfg, eventsTopic, silent); err != nil {
		return err
	}
	metrics, err := deliver.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	o.role = deliver.NewMsg(deliver.Defaults(), deliver.Deps{
		Pool: o.pool, Store: o.store, Kafka: o.kafka, Metrics: metrics, Log: silent, Now: time.Now,
	})
	if err := lease.Ensure(ctx, o.pool, lane, jobs.AllRoles()); err != nil {
		return err
	}
	o.fence, err = lease.Take(ctx, o.pool, jobs.RoleMsg, jobs.Wake{Lane: lane, Epoch: 1}, "bench")
	return err
}

// rate gives how many events a second work sees to; it begins with a table that has these and no others.
func (o *outgoing) rate(ctx context.Context, work func(ctx context.Context) error) (float64, error) {
	if err := o.fill(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := work(ctx); err != nil {
		return 0, err
	}
	took := time.Since(start)
	var left int
	err := o.pool.QueryRow(ctx, "SELECT count(*) FROM msg_event WHERE state <> 'SENT'").Scan(&left)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d events are left", left)
	}
	return float64(o.events) / took.Seconds(), err
}

func (o *outgoing) fill(ctx context.Context) error {
	if _, err := o.pool.Exec(ctx, "TRUNCATE msg_event, event_span"); err != nil {
		return err
	}
	now := time.Now()
	events := make([]outbox.Event, o.events)
	for i := range events {
		flid := int64(1 + i%backlogFlights)
		events[i] = outbox.Event{
			Target: outbox.Msg, Message: message.Position{ID: int64(i + 1)}, FLID: flid, PartitionKey: strconv.FormatInt(flid, 10),
			Type: outbox.Upsert, StateVersion: int64(i + 1), Kind: "FLOP-STND", SNDR: "BNCH", ReceivedAt: now,
			Payload: json.RawMessage(fmt.Sprintf(`{"flid":%d,"op":"UPDATE","stateVersion":%d,"fields":{"stnd":"%d"}}`, flid, i+1, i)),
		}
	}
	err := db.InTx(ctx, o.pool, func(tx pgx.Tx) error { return o.store.InsertEvents(ctx, tx, events, now) })
	if err != nil {
		return err
	}
	_, err = o.pool.Exec(ctx, "VACUUM ANALYZE msg_event, event_span")
	return err
}

// mark reads and marks in batches, as fast as that goes, with commits like the role's.
func (o *outgoing) mark(ctx context.Context) error {
	var last int64
	for more := true; more; {
		err := db.InTx(ctx, o.pool, func(tx pgx.Tx) error {
			if err := o.store.Relax(ctx, tx); err != nil {
				return err
			}
			events, err := o.store.PendingEvents(ctx, tx, outbox.Msg, last, deliver.Defaults().Batch)
			if err != nil {
				return err
			}
			more = len(events) > 0
			sent := make([]store.Delivered, len(events))
			for i, e := range events {
				sent[i], last = store.Delivered{ID: e.ID, FLID: e.FLID}, e.ID
			}
			return o.store.MarkSent(ctx, tx, outbox.Msg, sent, time.Now())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *outgoing) deliver(ctx context.Context) error {
	for {
		next, err := o.role.Step(ctx, o.fence)
		switch {
		case err != nil:
			return err
		case next.Wait > 0:
			return fmt.Errorf("delivery has to wait %s", next.Wait)
		case !next.Again:
			return nil
		}
	}
}

func (o *outgoing) slowly(ctx context.Context) error {
	o.world.Broker.Delay(brokerPause)
	defer o.world.Broker.Delay(0)
	return o.deliver(ctx)
}
