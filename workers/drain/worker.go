package drain

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"msgexchange/jobs"
)

// Worker runs a drain as a River worker for the job kind A.
type Worker[A jobs.Args] struct {
	river.WorkerDefaults[A]
	drain *Drain
	pod   string
}

// NewWorker makes the River worker of d on the pod named.
func NewWorker[A jobs.Args](d *Drain, pod string) *Worker[A] {
	return &Worker[A]{drain: d, pod: pod}
}

// Work is river.Worker's: one run of the drain.
func (w *Worker[A]) Work(ctx context.Context, job *river.Job[A]) error {
	return w.drain.Run(ctx, Job{
		Wake:   job.Args.For(),
		Holder: fmt.Sprintf("%s/%d.%d", w.pod, job.ID, job.Attempt),
		Complete: func(ctx context.Context, tx pgx.Tx) error {
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		},
	})
}

// jobGrace is what a run may take beyond RunFor: one step and the handing over.
const jobGrace = 60 * time.Second

// Timeout is river.Worker's: a run that hangs is cancelled. Well below the rescue age (O4).
func (w *Worker[A]) Timeout(*river.Job[A]) time.Duration { return w.drain.Config.RunFor + jobGrace }

// NextRetry is river.Worker's: a wake-up that failed comes back soon, whatever its attempt (K02).
func (w *Worker[A]) NextRetry(job *river.Job[A]) time.Time {
	return time.Now().Add(min(time.Duration(job.Attempt)*time.Second, 10*time.Second))
}
