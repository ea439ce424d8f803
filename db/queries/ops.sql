-- What operators look at (contract §4). Lists: newest first; a page begins after the place of the last row of the page before,
-- working table and archive together. Each filter is left out of the plan when it is not given: the caller asks for a plan of
-- its own for every call (freshPlan in db/store), since one plan for all would read the tables from end to end.

-- name: OpsMessages :many
-- Served by proc_state_received_idx in the order of the page, or by the index of whatever filter leaves few rows; the same
-- indexes on proc_state_hst.
SELECT m.msg_id, m.generation, m.state, m.error_class, m.root_error_class, m.last_error, m.skip_reason, m.identity_key,
       m.identity_reuse, m.attempts, m.next_attempt_at, m.processing_started_at, m.received_at, m.created_at, m.updated_at,
       m.finished_at, m.sndr, m.type, m.styp, m.seqn, m.dttm, m.late, m.backfill_next_at, m.backfill_at, m.backfill_attempts,
       m.backfill_error, m.backfill_abandoned_at, m.backfill_abandoned_reason, m.replay_count, m.archived
FROM (
    (SELECT p.msg_id, p.generation, p.state, p.error_class, p.root_error_class, p.last_error, p.skip_reason, p.identity_key,
            p.identity_reuse, p.attempts, p.next_attempt_at, p.processing_started_at, p.received_at, p.created_at, p.updated_at,
            p.finished_at, p.sndr, p.type, p.styp, p.seqn, p.dttm, p.late, p.backfill_next_at, p.backfill_at, p.backfill_attempts,
            p.backfill_error, p.backfill_abandoned_at, p.backfill_abandoned_reason, p.replay_count,
            coalesce(p.received_at, p.created_at) AS at, false AS archived
     FROM proc_state p
     WHERE (sqlc.narg('before_at')::timestamptz IS NULL
           OR (coalesce(p.received_at, p.created_at), p.generation, p.msg_id)
            < (sqlc.narg('before_at')::timestamptz, @before_generation::integer, @before_id::bigint))
      AND (sqlc.narg('from_time')::timestamptz IS NULL OR coalesce(p.received_at, p.created_at) >= sqlc.narg('from_time'))
      AND (sqlc.narg('to_time')::timestamptz IS NULL OR coalesce(p.received_at, p.created_at) < sqlc.narg('to_time'))
      AND (sqlc.narg('state')::text IS NULL OR p.state = sqlc.narg('state'))
      AND (sqlc.narg('class')::text IS NULL OR p.error_class IN (sqlc.narg('class'), 'EXHAUSTED')
           AND (sqlc.narg('class') IN (p.error_class, p.root_error_class)))
      AND (sqlc.narg('type')::text IS NULL OR p.type = sqlc.narg('type'))
      AND (sqlc.narg('styp')::text IS NULL OR p.styp = sqlc.narg('styp'))
      AND (sqlc.narg('error')::text IS NULL
           OR p.last_error IS NOT NULL AND position(lower(sqlc.narg('error')) IN lower(p.last_error)) > 0)
      AND (sqlc.narg('reuse')::text IS NULL OR p.identity_reuse = sqlc.narg('reuse'))
      AND coalesce(NOT sqlc.narg('archived')::boolean, true)
      AND (NOT @late::boolean OR p.late)
      AND (NOT @mark_owed::boolean OR p.backfill_next_at IS NOT NULL AND p.backfill_abandoned_at IS NULL)
      AND (NOT @mark_failed::boolean OR p.backfill_next_at IS NOT NULL AND p.backfill_abandoned_at IS NULL AND p.backfill_error IS NOT NULL)
      AND (NOT @mark_abandoned::boolean OR p.backfill_abandoned_at IS NOT NULL)
      AND (sqlc.narg('flid')::bigint IS NULL
           OR p.msg_id = ANY (ARRAY(SELECT c.msg_id FROM flight_change c WHERE c.flid = sqlc.narg('flid')))
          AND p.generation = ANY (ARRAY(SELECT c.generation FROM flight_change c WHERE c.flid = sqlc.narg('flid')))
          AND EXISTS (SELECT 1 FROM flight_change c
                      WHERE c.flid = sqlc.narg('flid') AND c.msg_id = p.msg_id AND c.generation = p.generation))
     ORDER BY coalesce(p.received_at, p.created_at) DESC, p.generation DESC, p.msg_id DESC
     LIMIT @max_rows)
    UNION ALL
    (SELECT h.msg_id, h.generation, h.state, h.error_class, h.root_error_class, h.last_error, h.skip_reason, h.identity_key,
            h.identity_reuse, h.attempts, h.next_attempt_at, h.processing_started_at, h.received_at, h.created_at, h.updated_at,
            h.finished_at, h.sndr, h.type, h.styp, h.seqn, h.dttm, h.late, h.backfill_next_at, h.backfill_at, h.backfill_attempts,
            h.backfill_error, h.backfill_abandoned_at, h.backfill_abandoned_reason, h.replay_count,
            coalesce(h.received_at, h.created_at), true
     FROM proc_state_hst h
     WHERE (sqlc.narg('before_at')::timestamptz IS NULL
           OR (coalesce(h.received_at, h.created_at), h.generation, h.msg_id)
            < (sqlc.narg('before_at')::timestamptz, @before_generation::integer, @before_id::bigint))
      AND (sqlc.narg('from_time')::timestamptz IS NULL OR coalesce(h.received_at, h.created_at) >= sqlc.narg('from_time'))
      AND (sqlc.narg('to_time')::timestamptz IS NULL OR coalesce(h.received_at, h.created_at) < sqlc.narg('to_time'))
      AND (sqlc.narg('state')::text IS NULL OR h.state = sqlc.narg('state'))
      AND (sqlc.narg('class')::text IS NULL OR h.error_class IN (sqlc.narg('class'), 'EXHAUSTED')
           AND (sqlc.narg('class') IN (h.error_class, h.root_error_class)))
      AND (sqlc.narg('type')::text IS NULL OR h.type = sqlc.narg('type'))
      AND (sqlc.narg('styp')::text IS NULL OR h.styp = sqlc.narg('styp'))
      AND (sqlc.narg('error')::text IS NULL
           OR h.last_error IS NOT NULL AND position(lower(sqlc.narg('error')) IN lower(h.last_error)) > 0)
      AND (sqlc.narg('reuse')::text IS NULL OR h.identity_reuse = sqlc.narg('reuse'))
      AND coalesce(sqlc.narg('archived')::boolean, true)
      AND (NOT @late::boolean OR h.late)
      AND NOT @mark_owed::boolean AND NOT @mark_failed::boolean -- such a row is not archived
      AND (NOT @mark_abandoned::boolean OR h.backfill_abandoned_at IS NOT NULL)
      AND (sqlc.narg('flid')::bigint IS NULL
           OR h.msg_id = ANY (ARRAY(SELECT c.msg_id FROM flight_change c WHERE c.flid = sqlc.narg('flid')))
          AND h.generation = ANY (ARRAY(SELECT c.generation FROM flight_change c WHERE c.flid = sqlc.narg('flid')))
          AND EXISTS (SELECT 1 FROM flight_change c
                      WHERE c.flid = sqlc.narg('flid') AND c.msg_id = h.msg_id AND c.generation = h.generation))
     ORDER BY coalesce(h.received_at, h.created_at) DESC, h.generation DESC, h.msg_id DESC
     LIMIT @max_rows)
) m
ORDER BY m.at DESC, m.generation DESC, m.msg_id DESC
LIMIT @max_rows;

-- name: OpsMessage :one
-- Served by the primary key.
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse, attempts, next_attempt_at,
       processing_started_at, received_at, created_at, updated_at, finished_at, sndr, type, styp, seqn, dttm, late,
       backfill_next_at, backfill_at, backfill_attempts, backfill_error, backfill_abandoned_at, backfill_abandoned_reason, replay_count
FROM proc_state
WHERE msg_id = @msg_id AND (sqlc.narg('generation')::integer IS NULL OR generation = sqlc.narg('generation'));

-- name: OpsArchivedMessage :one
-- The newest archived message of that id; one look into the primary key for each generation of ids there has been.
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse, attempts, next_attempt_at,
       processing_started_at, received_at, created_at, updated_at, finished_at, sndr, type, styp, seqn, dttm, late,
       backfill_next_at, backfill_at, backfill_attempts, backfill_error, backfill_abandoned_at, backfill_abandoned_reason, replay_count
FROM proc_state_hst
WHERE msg_id = @msg_id
  AND generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))))
  AND (sqlc.narg('generation')::integer IS NULL OR generation = sqlc.narg('generation'))
ORDER BY generation DESC
LIMIT 1;

-- name: OpsEvents :many
-- Served by msg_event_created_at_idx in the order of the page, or by the index of whatever filter leaves few rows; the same on
-- msg_event_hst. by_span: those of the state are few, and found by event_span. A payload larger than inline_bytes is left out: a
-- page would hold megabytes.
SELECT m.event_id, m.target, m.msg_id, m.generation, m.flid, m.partition_key, m.event_type, m.state_version, m.kind, m.sndr, m.state,
       m.attempts, m.next_attempt_at, m.last_error, m.refusal, m.superseded_by, m.kafka_partition, m.kafka_offset, m.received_at,
       m.created_at, m.sent_at, m.payload, m.payload_bytes, m.archived
FROM (
    (SELECT e.event_id, e.target, e.msg_id, e.generation, e.flid, e.partition_key, e.event_type, e.state_version, e.kind, e.sndr, e.state,
            e.attempts, e.next_attempt_at, e.last_error, e.refusal, e.superseded_by, e.kafka_partition, e.kafka_offset, e.received_at,
            e.created_at, e.sent_at,
            (CASE WHEN octet_length(e.payload::text) <= @inline_bytes::integer THEN e.payload ELSE 'null' END)::jsonb AS payload,
            coalesce(octet_length(e.payload::text), 0)::integer AS payload_bytes,
            false AS archived
     FROM msg_event e
     WHERE (sqlc.narg('before_at')::timestamptz IS NULL OR (e.created_at, e.event_id) < (sqlc.narg('before_at')::timestamptz, @before_id::bigint))
      AND (sqlc.narg('from_time')::timestamptz IS NULL OR e.created_at >= sqlc.narg('from_time'))
      AND (sqlc.narg('to_time')::timestamptz IS NULL OR e.created_at < sqlc.narg('to_time'))
      AND (sqlc.narg('target')::text IS NULL OR e.target = sqlc.narg('target'))
      AND coalesce(NOT sqlc.narg('archived')::boolean, true)
      AND (sqlc.narg('state')::text IS NULL OR e.state = sqlc.narg('state'))
      AND (NOT @by_span::boolean OR e.event_id = ANY (ARRAY(
           SELECT w.event_id FROM event_span s
           CROSS JOIN LATERAL (
               SELECT i.event_id FROM msg_event i
               WHERE i.event_id BETWEEN s.first_id AND s.last_id AND i.target = s.target AND i.state = s.state
               ORDER BY i.event_id LIMIT 1024
           ) w
           WHERE s.state = sqlc.narg('state') AND (sqlc.narg('target')::text IS NULL OR s.target = sqlc.narg('target')))))
      AND (sqlc.narg('msg_id')::bigint IS NULL OR e.msg_id = sqlc.narg('msg_id'))
      AND (sqlc.narg('flid')::bigint IS NULL OR e.flid = sqlc.narg('flid'))
     ORDER BY e.created_at DESC, e.event_id DESC
     LIMIT @max_rows)
    UNION ALL
    (SELECT h.event_id, h.target, h.msg_id, h.generation, h.flid, h.partition_key, h.event_type, h.state_version, h.kind, h.sndr, h.state,
            h.attempts, h.next_attempt_at, h.last_error, h.refusal, h.superseded_by, h.kafka_partition, h.kafka_offset, h.received_at,
            h.created_at, h.sent_at,
            (CASE WHEN octet_length(h.payload::text) <= @inline_bytes::integer THEN h.payload ELSE 'null' END)::jsonb AS payload,
            coalesce(octet_length(h.payload::text), 0)::integer AS payload_bytes,
            true
     FROM msg_event_hst h
     WHERE (sqlc.narg('before_at')::timestamptz IS NULL OR (h.created_at, h.event_id) < (sqlc.narg('before_at')::timestamptz, @before_id::bigint))
      AND (sqlc.narg('from_time')::timestamptz IS NULL OR h.created_at >= sqlc.narg('from_time'))
      AND (sqlc.narg('to_time')::timestamptz IS NULL OR h.created_at < sqlc.narg('to_time'))
      AND (sqlc.narg('target')::text IS NULL OR h.target = sqlc.narg('target'))
      AND coalesce(sqlc.narg('state')::text <> 'PENDING', true) -- none of these is archived
      AND coalesce(sqlc.narg('archived')::boolean, true)
      AND (sqlc.narg('state')::text IS NULL OR h.state = sqlc.narg('state'))
      AND (sqlc.narg('msg_id')::bigint IS NULL OR h.msg_id = sqlc.narg('msg_id')
           AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0)))))
      AND (sqlc.narg('flid')::bigint IS NULL OR h.flid = sqlc.narg('flid'))
     ORDER BY h.created_at DESC, h.event_id DESC
     LIMIT @max_rows)
) m
ORDER BY m.created_at DESC, m.event_id DESC
LIMIT @max_rows;

-- name: OpsEvent :many
-- One event with its whole payload, archived or not. Served by the primary keys: event ids are one sequence, so that of all
-- generations at most one has it.
SELECT e.event_id, e.target, e.msg_id, e.generation, e.flid, e.partition_key, e.event_type, e.state_version, e.kind, e.sndr, e.state,
       e.attempts, e.next_attempt_at, e.last_error, e.refusal, e.superseded_by, e.kafka_partition, e.kafka_offset, e.received_at,
       e.created_at, e.sent_at,
       coalesce(e.payload, 'null')::jsonb AS payload, coalesce(octet_length(e.payload::text), 0)::integer AS payload_bytes, false AS archived
FROM msg_event e
WHERE e.event_id = @event_id
UNION ALL
SELECT h.event_id, h.target, h.msg_id, h.generation, h.flid, h.partition_key, h.event_type, h.state_version, h.kind, h.sndr, h.state,
       h.attempts, h.next_attempt_at, h.last_error, h.refusal, h.superseded_by, h.kafka_partition, h.kafka_offset, h.received_at,
       h.created_at, h.sent_at,
       coalesce(h.payload, 'null')::jsonb, coalesce(octet_length(h.payload::text), 0)::integer, true
FROM msg_event_hst h
WHERE h.event_id = @event_id
  AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))));

-- name: OpsHoles :many
-- Ids that are missing, and those that were passed; few rows. Newest ids first.
SELECT h.lane, h.generation, h.first_id, h.last_id, h.first_seen_at, h.released_at
FROM inbox_hole h
WHERE (sqlc.narg('open')::boolean IS NULL OR (h.released_at IS NULL) = sqlc.narg('open'))
  AND (NOT @paged::boolean OR (h.generation, h.first_id) < (@before_generation::integer, @before_id::bigint))
ORDER BY h.generation DESC, h.first_id DESC
LIMIT @max_rows;

-- name: OpsLanes :many
-- One row a lane: how far it is. Holes are few.
SELECT c.lane, c.generation, c.committed_up_to, c.id_step, c.seeded_at, c.seeded_from, c.stopped_reason, c.stopped_at, c.last_polled_at,
       (SELECT count(*) FROM inbox_hole h WHERE h.lane = c.lane AND h.generation = c.generation AND h.released_at IS NULL) AS holes_open
FROM inbox_cursor c
ORDER BY c.lane;

-- name: OpsLeases :many
-- Who works on what; a handful of rows.
SELECT lane, role, epoch, holder, heartbeat_at, troubled_at FROM pipeline_lease ORDER BY lane, role;

-- name: OpsUnfinished :one
-- Served by proc_state_unfinished_idx and, for the dead ones that are not archived yet, proc_state_dead_idx.
SELECT count(*) AS unfinished, count(*) FILTER (WHERE state = 'FAILED') AS failed,
       (SELECT count(*) FROM proc_state d WHERE d.state = 'DEAD')::bigint AS dead,
       coalesce(min(msg_id), 0)::bigint AS head_id,
       coalesce(date_part('epoch', sqlc.arg('now')::timestamptz - min(coalesce(received_at, created_at))), 0)::float8 AS oldest_seconds
FROM proc_state
WHERE state IN ('PENDING', 'FAILED');

-- name: OpsSpanned :one
-- How many events of a state there may be, by event_span.
SELECT coalesce(sum(s.amount), 0)::bigint AS amount FROM event_span s WHERE s.state = @state;

-- name: OpsMarks :one
-- Served by proc_state_backfill_due_idx and proc_state_backfill_abandoned_idx.
SELECT count(*) AS owed, (SELECT count(*) FROM proc_state a WHERE a.backfill_abandoned_at IS NOT NULL)::bigint AS abandoned,
       coalesce(date_part('epoch', sqlc.arg('now')::timestamptz - min(finished_at)), 0)::float8 AS oldest_seconds
FROM proc_state
WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL;

-- name: OpsLiveFlights :one
-- Served by flight_schd_live_idx.
SELECT count(*) FROM flight_schd WHERE deleted_at IS NULL;
