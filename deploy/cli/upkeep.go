package cli

import (
	"context"
	"time"

	"msgexchange/workers/maintenance"
)

// makeKeeper puts together the work that the clock asks for. Every process knows all of it, whether it does it or not.
func (n *node) makeKeeper(context.Context) error {
	lists, err := n.refdataTasks()
	if err != nil {
		return err
	}
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
	return []maintenance.Task{
		{Name: maintenance.ArchiveTask, When: c.Archive.Schedule, Do: archive.Do},
		{Name: maintenance.SnapLogTask, When: snapLogSchedule, Do: maintenance.SnapLog(n.pool, n.store, time.Now)},
	}
}

// What has no key of its own runs at quiet times between the others.
const snapLogSchedule = "45 3 * * *"
