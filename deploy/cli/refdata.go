package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/http/adminapi"
	"msgexchange/jobs/message"
	jobsrefdata "msgexchange/jobs/refdata"
	jobsrequest "msgexchange/jobs/request"
	"msgexchange/workers/maintenance"
	"msgexchange/workers/refdata"
)

// refreshAll is the task that refreshes every list of the neighbour, each by a task of its own, so that one that fails is
// tried again alone. Operators know the name (contract §8.12).
const refreshAll = "refdata"

// refdataTasks are the lists that are asked for by the clock: of the airport's database by request, of the neighbour by HTTP.
func (n *node) refdataTasks() ([]maintenance.Task, error) {
	when := n.config.Refdata.Schedule
	var tasks []maintenance.Task
	for _, kind := range slices.Sorted(maps.Keys(when)) {
		if strings.HasPrefix(kind, "RQRD-") && n.live() {
			tasks = append(tasks, maintenance.Task{Name: "request-" + kind, When: when[kind], Do: n.askFor(message.Kind(kind))})
		}
	}
	r, err := n.refresher()
	if err != nil {
		return nil, err
	}
	for _, list := range r.Lists() {
		tasks = append(tasks, maintenance.Task{Name: listTask(list), When: when[list], Do: refresh(r, list)})
	}
	all := maintenance.Task{Name: refreshAll, Do: n.orderLists(r.Lists())}
	if len(r.Endpoints) > 0 {
		all.When = n.config.AdminAPI.Schedule
	} else {
		all.Unable = noNeighbour
	}
	return append(tasks, all), nil
}

const noNeighbour = "there is no neighbour to ask: admin-api.url is not set, or this is a shadow without admin-api.in-shadow"

func listTask(list string) string { return refreshAll + "-" + list }

func (n *node) askFor(kind message.Kind) func(context.Context) (maintenance.Piece, error) {
	return func(ctx context.Context) (maintenance.Piece, error) {
		_, err := n.desk.Ask(ctx, kind, jobsrequest.Window{}, "schedule")
		return maintenance.Piece{Report: maintenance.Report{Counts: map[string]int64{"requests": 1}}}, err
	}
}

func refresh(r *refdata.Refresher, list string) func(context.Context) (maintenance.Piece, error) {
	return func(ctx context.Context) (maintenance.Piece, error) {
		done, err := r.Refresh(ctx, list)
		return maintenance.Piece{Report: maintenance.Report{Counts: map[string]int64{"changed": done.Changed, "removed": done.Removed}}}, err
	}
}

// orderLists asks for a run of each list's own task.
func (n *node) orderLists(lists []string) func(context.Context) (maintenance.Piece, error) {
	return func(ctx context.Context) (p maintenance.Piece, err error) {
		if len(lists) == 0 {
			p.Findings = []string{noNeighbour} // ordered of a pod that is configured otherwise
			return p, nil
		}
		p.Counts = map[string]int64{"lists": int64(len(lists))}
		return p, db.InTx(ctx, n.pool, func(tx pgx.Tx) error {
			for _, list := range lists {
				if _, err := n.keeper.Order(ctx, tx, listTask(list)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// refresher knows the neighbour's lists; none when there is no neighbour, or this is a shadow that is to leave it alone.
func (n *node) refresher() (*refdata.Refresher, error) {
	c := n.config.AdminAPI
	r := &refdata.Refresher{Endpoints: map[string]jobsrefdata.Endpoint{}, Pool: n.pool, Store: n.store, Log: n.log, Now: time.Now}
	if c.URL == "" || !n.live() && !c.InShadow {
		return r, nil
	}
	client := adminapi.New(adminapi.Config{URL: c.URL, Token: c.Token, Timeout: c.Timeout})
	n.closers = append(n.closers, client.Close)
	r.Neighbour = client
	for rtype, text := range c.Endpoints {
		e, err := jobsrefdata.ParseEndpoint(rtype, text)
		if err != nil {
			return nil, fmt.Errorf("admin-api.endpoints: %w", err)
		}
		r.Endpoints[rtype] = e
	}
	return r, nil
}
