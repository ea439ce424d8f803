package cli

import (
	"context"
	"time"

	"msgexchange/jobs/sweep"
	"msgexchange/workers/maintenance"
)

// makeKeeper puts together the work that the clock asks for. Every process knows all of it, whether it does it or not.
func (n *node) makeKeeper(context.Context) error {
	lists, err := n.refdataTasks()
	if err != nil {
		return err
	}
	maintenance.NewMetrics(n.metrics, n.pool, n.store, time.Now)
	n.keeper, err = maintenance.New(maintenance.Deps{
		Pool: n.pool, Store: n.store, Jobs: n.jobs, Zone: n.zone, Log: n.log, Now: time.Now,
	}, append(n.upkeep(), lists...)...)
	return err
}

// upkeep lists the tasks.
func (n *node) upkeep() []maintenance.Task {
	c := n.config
	archive := maintenance.NewArchive(maintenance.ArchiveConfig{
		Retention: c.Archive.Retention, Texts: c.Raw.Retention, Identities: c.Identity.Retention,
	}, n.pool, n.store, time.Now)
	sample := c.Consistency.Schedule
	if c.Consistency.DailySampleRatio == 0 {
		sample = ""
	}
	return []maintenance.Task{
		{Name: maintenance.ArchiveTask, When: c.Archive.Schedule, Do: archive.Do},
		{Name: maintenance.HistoryTask, When: c.History.Schedule, Do: n.sweeper().Do},
		{Name: maintenance.SnapLogTask, When: snapLogSchedule, Do: maintenance.SnapLog(n.pool, n.store, time.Now)},
		{Name: maintenance.RetentionTask, When: retentionSchedule, Do: maintenance.Retention(maintenance.RetentionConfig{
			Archived: c.Archive.Keep, Swept: c.History.Keep, Records: c.Audit.Retention,
		}, n.pool, n.store, time.Now)},
		{Name: maintenance.ConsistencyTask, AtStart: c.Consistency.OnStartup, Do: n.sentinel(1).Do},
		{Name: maintenance.SampleTask, When: sample, Do: n.sentinel(c.Consistency.DailySampleRatio).Do},
	}
}

// What has no key of its own runs at quiet times between the others.
const (
	snapLogSchedule   = "45 3 * * *"
	retentionSchedule = "0 4 * * *"
)

func (n *node) sweeper() *maintenance.Sweep {
	h := n.config.History
	return maintenance.NewSweep(maintenance.SweepConfig{
		Enabled: h.Enabled,
		Policy: sweep.Policy{
			Days: int(h.Retention / (24 * time.Hour)), After: h.Rules(), Zone: n.zone, CutoffHour: n.config.OperationDay.CutoffHour,
		},
	}, n.pool, n.store, n.waker, n.log, time.Now)
}

// sentinel compares that share of all flights.
func (n *node) sentinel(share float64) *maintenance.Sentinel {
	c := n.config
	return maintenance.NewSentinel(maintenance.SentinelConfig{
		Lane: c.Lane, Share: share, Marks: n.live(), Kept: c.Archive.Keep, Zone: n.zone, CutoffHour: c.OperationDay.CutoffHour,
	}, n.pool, n.store, n.mailbox, n.log, time.Now)
}
