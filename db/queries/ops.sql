-- What operators look at (contract §4). Newest first; the cursor is the last id of the page before.

-- name: OpsMessages :many
-- Walks the primary key backwards; the page is cut by max_rows, the walk by statement_timeout.
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse, attempts, next_attempt_at,
       processing_started_at, received_at, created_at, updated_at, finished_at, sndr, type, styp, seqn, dttm, late,
       backfill_next_at, backfill_at, backfill_attempts, backfill_error, backfill_abandoned_at, backfill_abandoned_reason, replay_count
FROM proc_state
WHERE msg_id < @before_id
  AND (sqlc.narg('state')::text IS NULL OR state = sqlc.narg('state'))
  AND (sqlc.narg('class')::text IS NULL OR error_class = sqlc.narg('class') OR root_error_class = sqlc.narg('class'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR coalesce(received_at, created_at) >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR coalesce(received_at, created_at) < sqlc.narg('to_time'))
ORDER BY msg_id DESC
LIMIT @max_rows;

-- name: OpsMessage :one
-- Served by the primary key.
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse, attempts, next_attempt_at,
       processing_started_at, received_at, created_at, updated_at, finished_at, sndr, type, styp, seqn, dttm, late,
       backfill_next_at, backfill_at, backfill_attempts, backfill_error, backfill_abandoned_at, backfill_abandoned_reason, replay_count
FROM proc_state
WHERE msg_id = @msg_id;

-- name: OpsArchivedMessage :one
-- The newest archived message of that id; one look into the primary key for each generation of ids there has been.
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse, attempts, next_attempt_at,
       processing_started_at, received_at, created_at, updated_at, finished_at, sndr, type, styp, seqn, dttm, late,
       backfill_next_at, backfill_at, backfill_attempts, backfill_error, backfill_abandoned_at, backfill_abandoned_reason, replay_count
FROM proc_state_hst
WHERE msg_id = @msg_id
  AND generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))))
ORDER BY generation DESC
LIMIT 1;

-- name: OpsEvents :many
-- Walks the primary key backwards, or msg_event_msg_id_idx when one message is asked for.
SELECT event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, coalesce(payload, 'null')::jsonb AS payload, state, attempts,
       next_attempt_at, last_error, refusal, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at
FROM msg_event
WHERE event_id < @before_id
  AND (sqlc.narg('target')::text IS NULL OR target = sqlc.narg('target'))
  AND (sqlc.narg('state')::text IS NULL OR state = sqlc.narg('state'))
  AND (sqlc.narg('msg_id')::bigint IS NULL OR msg_id = sqlc.narg('msg_id'))
  AND (sqlc.narg('flid')::bigint IS NULL OR flid = sqlc.narg('flid'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR created_at >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR created_at < sqlc.narg('to_time'))
ORDER BY event_id DESC
LIMIT @max_rows;

-- name: OpsLanes :many
-- One row a lane: how far it is. Holes are few.
SELECT c.lane, c.generation, c.committed_up_to, c.id_step, c.seeded_at, c.seeded_from, c.stopped_reason, c.stopped_at, c.last_polled_at,
       (SELECT count(*) FROM inbox_hole h WHERE h.lane = c.lane AND h.generation = c.generation AND h.released_at IS NULL) AS holes_open
FROM inbox_cursor c
ORDER BY c.lane;

-- name: OpsLeases :many
-- Who works on what; a handful of rows.
SELECT lane, role, epoch, holder, heartbeat_at FROM pipeline_lease ORDER BY lane, role;

-- name: OpsUnfinished :one
-- Served by proc_state_unfinished_idx.
SELECT count(*) AS unfinished, count(*) FILTER (WHERE state = 'FAILED') AS failed,
       coalesce(min(msg_id), 0)::bigint AS head_id,
       coalesce(date_part('epoch', sqlc.arg('now')::timestamptz - min(coalesce(received_at, created_at))), 0)::float8 AS oldest_seconds
FROM proc_state
WHERE state IN ('PENDING', 'FAILED');

-- name: OpsEventCounts :many
-- Served by msg_event_pending_idx and msg_event_dead_idx; SENT events are not counted, there are too many.
SELECT target, count(*) FILTER (WHERE state = 'PENDING') AS pending, count(*) FILTER (WHERE state = 'DEAD') AS dead,
       coalesce(date_part('epoch', sqlc.arg('now')::timestamptz - min(created_at) FILTER (WHERE state = 'PENDING')), 0)::float8 AS oldest_seconds
FROM (
    SELECT target, state, created_at FROM msg_event WHERE state = 'PENDING'
    UNION ALL
    SELECT target, state, created_at FROM msg_event WHERE state = 'DEAD'
) e
GROUP BY target
ORDER BY target;

-- name: OpsMarks :one
-- Served by proc_state_backfill_due_idx.
SELECT count(*) AS owed, coalesce(date_part('epoch', sqlc.arg('now')::timestamptz - min(finished_at)), 0)::float8 AS oldest_seconds
FROM proc_state
WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL;

-- name: OpsLiveFlights :one
-- Served by flight_schd_live_idx.
SELECT count(*) FROM flight_schd WHERE deleted_at IS NULL;
