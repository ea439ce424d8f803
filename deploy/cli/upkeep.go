package cli

import (
	"context"
	"time"

	"msgexchange/workers/maintenance"
)

// makeKeeper puts together the work that the clock asks for. Every process knows all of it, whether it does it or not.
func (n *node) makeKeeper(context.Context) (err error) {
	n.keeper, err = maintenance.New(maintenance.Deps{
		Pool: n.pool, Store: n.store, Jobs: n.jobs, Zone: n.zone, Log: n.log, Now: time.Now,
	}, n.upkeep()...)
	return err
}

// upkeep lists the tasks.
func (n *node) upkeep() []maintenance.Task {
	return nil
}
