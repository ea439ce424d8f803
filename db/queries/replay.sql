-- Putting finished messages back into the line (design §10).

-- name: ReplayMatches :many
-- Finished messages of the present ids that an order by class or time means: what is DEAD, and what was skipped because its
-- identity was reused. Served by proc_state_dead_idx, proc_state_skipped_idx and proc_state_hst_state_idx.
SELECT m.msg_id FROM (
    SELECT p.msg_id, p.generation, p.state, p.error_class, p.root_error_class, p.identity_reuse, coalesce(p.received_at, p.created_at) AS at
    FROM proc_state p WHERE p.state = 'DEAD' OR p.state = 'SKIPPED'
    UNION ALL
    SELECT h.msg_id, h.generation, h.state, h.error_class, h.root_error_class, h.identity_reuse, coalesce(h.received_at, h.created_at)
    FROM proc_state_hst h
    WHERE h.state IN ('DEAD', 'SKIPPED') AND h.generation = (SELECT max(c.generation) FROM inbox_cursor c)
) m
WHERE (m.state = 'DEAD' OR (@force::boolean AND m.identity_reuse = 'content'))
  AND (sqlc.narg('class')::text IS NULL OR m.error_class = sqlc.narg('class') OR m.root_error_class = sqlc.narg('class'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR m.at >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR m.at < sqlc.narg('to_time'))
ORDER BY m.msg_id
LIMIT @max_rows;

-- name: ReplayRows :many
-- What is known of the messages named, archived or not; of an archived id the newest. Served by the primary keys.
SELECT m.msg_id, m.generation, m.state, m.error_class, m.skip_reason, m.identity_reuse, m.sndr, m.type, m.styp, m.seqn, m.dttm, m.content_hash,
       m.marking::boolean AS marking, m.archived::boolean AS archived,
       (m.archived AND m.generation < (SELECT max(c.generation) FROM inbox_cursor c))::boolean AS closed,
       EXISTS (SELECT 1 FROM msg_raw r WHERE r.generation = m.generation AND r.msg_id = m.msg_id) AS kept
FROM (
    SELECT p.msg_id, p.generation, p.state, p.error_class, p.skip_reason, p.identity_reuse, p.sndr, p.type, p.styp, p.seqn, p.dttm, p.content_hash,
           coalesce(p.backfill_attempts > 0 AND p.backfill_error IS NULL AND p.backfill_next_at > @now, false) AS marking, false AS archived
    FROM proc_state p WHERE p.msg_id = ANY(@ids::bigint[])
    UNION ALL
    SELECT h.msg_id, h.generation, h.state, h.error_class, h.skip_reason, h.identity_reuse, h.sndr, h.type, h.styp, h.seqn, h.dttm, h.content_hash,
           false, true
    FROM proc_state_hst h
    WHERE h.msg_id = ANY(@ids::bigint[])
      AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))))
) m
ORDER BY m.msg_id, m.archived, m.generation DESC;

-- name: RestoreArchived :exec
-- Out of the archive, as it was; PutBack does the rest. Its events stay where they are.
WITH back AS (
    DELETE FROM proc_state_hst h
    WHERE h.generation = (SELECT max(c.generation) FROM inbox_cursor c) AND h.msg_id = ANY(@ids::bigint[])
    RETURNING h.msg_id, h.generation, h.state, h.error_class, h.root_error_class, h.last_error, h.skip_reason, h.identity_key, h.identity_reuse,
        h.attempts, h.processing_started_at, h.received_at, h.created_at, h.updated_at, h.finished_at, h.content_hash, h.sndr, h.type, h.styp,
        h.seqn, h.dttm, h.late, h.replay_count, h.failures
)
INSERT INTO proc_state (msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse,
    attempts, processing_started_at, received_at, created_at, updated_at, finished_at, content_hash, sndr, type, styp, seqn, dttm, late, replay_count, failures)
SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse,
    attempts, processing_started_at, received_at, created_at, updated_at, finished_at, content_hash, sndr, type, styp, seqn, dttm, late, replay_count, failures
FROM back;

-- name: PutBack :many
-- PENDING again, as if it had never been tried; identity, number of replays and the last error stay. Not what is being
-- marked at this moment, nor what somebody else has put back meanwhile: marks and replays exclude each other here.
UPDATE proc_state p SET state = 'PENDING', attempts = 0, next_attempt_at = NULL, processing_started_at = NULL, finished_at = NULL,
    error_class = NULL, root_error_class = NULL, skip_reason = NULL, identity_reuse = NULL, updated_at = @now, replay_count = p.replay_count + 1,
    backfill_next_at = NULL, backfill_at = NULL, backfill_attempts = 0, backfill_error = NULL,
    backfill_abandoned_at = NULL, backfill_abandoned_reason = NULL
WHERE p.msg_id = ANY(@ids::bigint[]) AND p.state IN ('DEAD', 'SKIPPED')
  AND NOT coalesce(p.backfill_attempts > 0 AND p.backfill_error IS NULL AND p.backfill_next_at > @now, false)
RETURNING p.msg_id;
