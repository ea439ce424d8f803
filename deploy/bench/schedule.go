package main

import (
	"context"
	"fmt"
	"time"

	"msgexchange/deploy/systemtest/rig"
)

// schedule measures one SCHD-DNLD of a whole day, each round another day's: the way through the pipeline, from the look that finds
// the message, and with the idle poller's pause before it; until every event is in Kafka; and the most memory the process ever held.
func schedule(ctx context.Context, b *bench) error {
	var through, stored, sent []time.Duration
	var peak float64
	used := cpu{}
	err := b.with(ctx, func(pod *rig.Pod) error {
		for round := range min(b.rounds, 5) {
			m, err := b.day(uint64(round+1), b.flights)
			if err != nil {
				return err
			}
			before := b.records("msg")
			idle, err := spent()
			if err != nil {
				return err
			}
			at, err := b.put(ctx, m.Text)
			if err != nil {
				return err
			}
			looked, err := b.storedSchedules(ctx, round+1)
			if err != nil {
				return err
			}
			stored, through = append(stored, time.Since(at)), append(through, time.Since(looked))
			busy, err := spent()
			if err != nil {
				return err
			}
			used.plus(busy.minus(idle))
			var told int
			if err := b.world.Pool.QueryRow(ctx, "SELECT count(*) FROM msg_event WHERE target = 'KAFKA:msg'").Scan(&told); err != nil {
				return err
			}
			if err := b.until(ctx, time.Minute, func() (bool, error) { return b.records("msg") >= told, nil }); err != nil {
				return fmt.Errorf("%d of %d records: %w", b.records("msg")-before, told-before, err)
			}
			sent = append(sent, time.Since(at))
			if err := b.drained(ctx); err != nil {
				return err
			}
		}
		var err error
		peak, err = memory(pod, "VmHWM")
		return err
	})
	if err != nil {
		return err
	}
	const goal, goalMB = 2 * time.Second, 300
	b.table.goal(fmt.Sprintf("one DNLD of %d flights in the pipeline, look to stored", b.flights), median(through) <= goal, "≤ 2 s", "%.2f s", median(through).Seconds())
	b.table.limit("the same, from the mailbox's commit, an idle poller's pause in it", "%.2f s", median(stored).Seconds())
	b.table.limit("processor time until then, all processes", "%s", used.per(len(stored)))
	b.table.limit("the same, to the last record in Kafka", "%.2f s", median(sent).Seconds())
	b.table.goal("the most memory of the process meanwhile", peak <= goalMB, "≤ 300 MB", "%.0f MB", peak)
	return nil
}

// storedSchedules waits until so many schedules are stored, and says when the program took the newest over, by its clock, which is ours.
func (b *bench) storedSchedules(ctx context.Context, schedules int) (looked time.Time, err error) {
	if err := b.until(ctx, time.Minute, func() (bool, error) {
		var n int
		err := b.world.Pool.QueryRow(ctx, "SELECT count(*) FROM proc_state WHERE state = 'SUCCEEDED' AND type = 'SCHD'").Scan(&n)
		return n == schedules, err
	}); err != nil {
		return time.Time{}, err
	}
	err = b.world.Pool.QueryRow(ctx, "SELECT created_at FROM proc_state ORDER BY msg_id DESC LIMIT 1").Scan(&looked)
	return looked, err
}
