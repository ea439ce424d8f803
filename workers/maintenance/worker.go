package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/riverqueue/river"

	"msgexchange/jobs"
	"msgexchange/jobs/fault"
)

// Piece is what one piece of work found.
type Piece struct {
	More bool // there is more to do at once
	// Wait asks for a pause before the next piece, because something that must go first is under way. It implies More.
	Wait time.Duration
	Report
}

// Report is what a run did; pieces add up.
type Report struct {
	Counts   map[string]int64 `json:"counts,omitempty"`
	Findings []string         `json:"findings,omitempty"` // what somebody should look at, at most maxFindings
}

const maxFindings = 200

func (r *Report) add(more Report) {
	if r.Counts == nil {
		r.Counts = map[string]int64{}
	}
	for name, n := range more.Counts {
		r.Counts[name] += n
	}
	room := max(maxFindings-len(r.Findings), 0)
	r.Findings = append(r.Findings, more.Findings[:min(room, len(more.Findings))]...)
}

// Times of a run. A long task is many short jobs: each ends well before River would think it stuck (O4).
const (
	tickEvery  = 30 * time.Second
	runFor     = 45 * time.Second
	runTimeout = 2 * time.Minute
	maxBackoff = 10 * time.Minute
)

// Register adds the workers of both kinds, for pods that may lead as well as for those that work.
func (k *Keeper) Register(w *river.Workers) {
	river.AddWorker(w, &ticker{keeper: k})
	river.AddWorker(w, &maintainer{keeper: k})
}

// Periodic is what River's leader inserts. That it forgets when it did so last does not matter: a tick only looks.
func (k *Keeper) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(
		river.PeriodicInterval(tickEvery),
		func() (river.JobArgs, *river.InsertOpts) { return jobs.Tick{}, nil },
		&river.PeriodicJobOpts{ID: jobs.Tick{}.Kind(), RunOnStart: true},
	)}
}

type ticker struct {
	river.WorkerDefaults[jobs.Tick]
	keeper *Keeper
}

// Work is river.Worker's.
func (t *ticker) Work(ctx context.Context, _ *river.Job[jobs.Tick]) error { return t.keeper.Tick(ctx) }

// NextRetry is river.Worker's: a tick that failed is like one that comes a little later.
func (t *ticker) NextRetry(*river.Job[jobs.Tick]) time.Time { return time.Now().Add(tickEvery) }

type maintainer struct {
	river.WorkerDefaults[jobs.Maintain]
	keeper *Keeper
}

// Work is river.Worker's: one job's share of a run; the rest is the same job's, a moment later and perhaps on another pod.
func (m *maintainer) Work(ctx context.Context, job *river.Job[jobs.Maintain]) error {
	more, wait, err := m.keeper.run(ctx, job.Args.Task, job.ID)
	if err == nil && more {
		return river.JobSnooze(wait)
	}
	return err
}

// Timeout is river.Worker's.
func (m *maintainer) Timeout(*river.Job[jobs.Maintain]) time.Duration { return runTimeout }

// NextRetry is river.Worker's: fail closed, and try again until it is done.
func (m *maintainer) NextRetry(job *river.Job[jobs.Maintain]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*tickEvery, maxBackoff))
}

// run works on a task until it is done, has had its time, is to wait, or fails, and keeps how it went. It works half of the time at
// most: the disk and the log are shared with the messages, whose commits wait behind its batches (K10).
func (k *Keeper) run(ctx context.Context, name string, jobID int64) (more bool, wait time.Duration, err error) {
	task, known := k.tasks[name]
	if !known { // of a newer version's pod: it stays for one
		return false, 0, fmt.Errorf("maintenance: this pod knows no task %q", name)
	}
	report, err := k.begin(ctx, name, jobID)
	if err != nil {
		return false, 0, err
	}
	start := time.Now()
	for more = true; more && wait == 0 && err == nil && time.Since(start) < runFor && ctx.Err() == nil; {
		var piece Piece
		began := time.Now()
		piece, err = task.Do(ctx)
		report.add(piece.Report)
		more, wait = piece.More || piece.Wait > 0, piece.Wait
		if more && wait == 0 && err == nil {
			k.deps.Rest(ctx, time.Since(began))
		}
	}
	return more, wait, k.settle(ctx, name, jobID, report, more && err == nil, err)
}

func (k *Keeper) begin(ctx context.Context, name string, jobID int64) (r Report, err error) {
	before, err := k.deps.Store.BeginPeriodic(ctx, k.deps.Pool, name, jobID, k.deps.Now())
	if err != nil {
		return r, err
	}
	return r, fault.Wrap(fault.Infra, "read the report of "+name, json.Unmarshal(before, &r))
}

func (k *Keeper) settle(ctx context.Context, name string, jobID int64, r Report, more bool, failure error) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Infra, "write the report of "+name, err)
	}
	finished := k.deps.Now()
	switch {
	case failure != nil:
		k.deps.Log.WarnContext(ctx, "maintenance failed", "task", name, "error", fault.Text(failure))
	case more:
		finished = time.Time{}
	default:
		k.deps.Log.InfoContext(ctx, "maintenance done", "task", name, "counts", maps.Clone(r.Counts), "findings", len(r.Findings))
	}
	after := context.WithoutCancel(ctx)
	if err := k.deps.Store.SettlePeriodic(after, k.deps.Pool, name, jobID, b, fault.Text(failure), finished); err != nil && failure == nil {
		return err
	}
	return failure
}
