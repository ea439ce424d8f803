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
	return nil
}
