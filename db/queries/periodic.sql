-- Work that is done by the clock (K03). A handful of rows.

-- name: LockPeriodics :many
-- The rows as they stand, locked: of two ticks at once the second sees what the first has taken.
SELECT name, due_up_to FROM periodic_run WHERE name = ANY(@names::text[]) ORDER BY name FOR UPDATE;

-- name: EnsurePeriodics :exec
-- Work that is new is first due at its next time, not at once.
INSERT INTO periodic_run (name, due_up_to) SELECT unnest(@names::text[]), @now ON CONFLICT (name) DO NOTHING;

-- name: TakePeriodic :exec
-- Every due time up to now is taken by this one job.
UPDATE periodic_run SET due_up_to = @now, job_id = @job_id WHERE name = @name;

-- name: BeginPeriodic :exec
-- A run begins; a piece of a run that goes on keeps what the pieces before it found.
INSERT INTO periodic_run (name, due_up_to, job_id, started_at) VALUES (@name, @now, @job_id, @now)
ON CONFLICT (name) DO UPDATE SET
    started_at = CASE WHEN periodic_run.job_id = excluded.job_id AND periodic_run.finished_at IS NULL THEN coalesce(periodic_run.started_at, @now) ELSE @now END,
    report = CASE WHEN periodic_run.job_id = excluded.job_id AND periodic_run.finished_at IS NULL THEN periodic_run.report ELSE '{}' END,
    job_id = excluded.job_id, finished_at = NULL, error = NULL;

-- name: PeriodicReport :one
SELECT report FROM periodic_run WHERE name = @name;

-- name: SettlePeriodic :exec
UPDATE periodic_run SET finished_at = sqlc.narg('finished_at'), error = sqlc.narg('error'), report = @report,
    succeeded_at = CASE WHEN sqlc.narg('error')::text IS NULL THEN coalesce(sqlc.narg('finished_at'), succeeded_at) ELSE succeeded_at END
WHERE name = @name AND job_id = @job_id;

-- name: Periodics :many
SELECT name, due_up_to, job_id, started_at, finished_at, succeeded_at, error, report FROM periodic_run ORDER BY name;
