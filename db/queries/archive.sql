-- Moving out what is finished (design §10, K10): short batches, each whole or not at all. Nothing waits for a lock that a
-- message in work could hold.

-- name: ArchiveMessages :one
-- The next messages by received time, with their events: terminal, mark written, given up or not wanted, no event left to
-- send. Served by proc_state_received_idx. An event that is made PENDING again at this moment stays.
WITH due AS MATERIALIZED (
    SELECT p.msg_id, p.generation, coalesce(p.received_at, p.created_at) AS at FROM proc_state p
    WHERE coalesce(p.received_at, p.created_at) < @before::timestamptz
      AND (coalesce(p.received_at, p.created_at), p.msg_id) > (@after_time::timestamptz, @after_id::bigint)
      AND p.state IN ('SUCCEEDED', 'SKIPPED', 'DEAD')
      AND (p.backfill_next_at IS NULL OR p.backfill_abandoned_at IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM msg_event e WHERE e.msg_id = p.msg_id AND e.generation = p.generation AND e.state = 'PENDING')
    ORDER BY coalesce(p.received_at, p.created_at), p.msg_id
    LIMIT @max_rows
    FOR UPDATE SKIP LOCKED
), sent AS (
    DELETE FROM msg_event e USING due WHERE e.msg_id = due.msg_id AND e.generation = due.generation AND e.state IN ('SENT', 'DEAD')
    RETURNING e.event_id, e.target, e.msg_id, e.generation, e.flid, e.partition_key, e.event_type, e.state_version, e.kind, e.sndr, e.payload,
        e.state, e.attempts, e.next_attempt_at, e.last_error, e.refusal, e.superseded_by, e.kafka_partition, e.kafka_offset, e.received_at, e.created_at, e.sent_at
), events AS (
    INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload,
        state, attempts, next_attempt_at, last_error, refusal, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at, archived_at)
    SELECT sent.*, @now::timestamptz FROM sent
    RETURNING event_id
), done AS (
    DELETE FROM proc_state p USING due WHERE p.msg_id = due.msg_id
    RETURNING p.msg_id, p.generation, p.state, p.error_class, p.root_error_class, p.last_error, p.skip_reason, p.identity_key, p.identity_reuse,
        p.attempts, p.next_attempt_at, p.processing_started_at, p.received_at, p.created_at, p.updated_at, p.finished_at, p.content_hash,
        p.sndr, p.type, p.styp, p.seqn, p.dttm, p.late, p.backfill_next_at, p.backfill_at, p.backfill_attempts, p.backfill_error,
        p.backfill_abandoned_at, p.backfill_abandoned_reason, p.replay_count, p.failures
), messages AS (
    INSERT INTO proc_state_hst (msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, identity_reuse,
        attempts, next_attempt_at, processing_started_at, received_at, created_at, updated_at, finished_at, content_hash,
        sndr, type, styp, seqn, dttm, late, backfill_next_at, backfill_at, backfill_attempts, backfill_error,
        backfill_abandoned_at, backfill_abandoned_reason, replay_count, failures, archived_at)
    SELECT done.*, @now::timestamptz FROM done
    RETURNING msg_id
)
SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM events) AS events,
       coalesce((SELECT max(due.at) FROM due), @after_time)::timestamptz AS last_time,
       coalesce((SELECT max(due.msg_id) FROM due WHERE due.at = (SELECT max(d.at) FROM due d)), @after_id)::bigint AS last_id;

-- name: ArchiveEvents :one
-- Events whose message is no longer here: those of the sweep, and those that were being sent again when it left. Served by
-- msg_event_created_at_idx.
WITH due AS MATERIALIZED (
    SELECT e.event_id FROM msg_event e
    WHERE e.created_at < @before AND e.state IN ('SENT', 'DEAD')
      AND NOT EXISTS (SELECT 1 FROM proc_state p WHERE p.msg_id = e.msg_id AND p.generation = e.generation)
    ORDER BY e.created_at, e.event_id
    LIMIT @max_rows
    FOR UPDATE SKIP LOCKED
), sent AS (
    DELETE FROM msg_event e USING due WHERE e.event_id = due.event_id
    RETURNING e.event_id, e.target, e.msg_id, e.generation, e.flid, e.partition_key, e.event_type, e.state_version, e.kind, e.sndr, e.payload,
        e.state, e.attempts, e.next_attempt_at, e.last_error, e.refusal, e.superseded_by, e.kafka_partition, e.kafka_offset, e.received_at, e.created_at, e.sent_at
), events AS (
    INSERT INTO msg_event_hst (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload,
        state, attempts, next_attempt_at, last_error, refusal, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at, archived_at)
    SELECT sent.*, @now::timestamptz FROM sent
    RETURNING event_id
)
SELECT count(*) AS events FROM events;

-- name: DropTexts :execrows
-- Texts past their own retention; never that of a message still to be tried. Served by msg_raw_created_at_idx.
DELETE FROM msg_raw r USING (
    SELECT o.generation, o.msg_id FROM msg_raw o
    WHERE o.created_at < @before
      AND NOT EXISTS (SELECT 1 FROM proc_state p WHERE p.msg_id = o.msg_id AND p.generation = o.generation AND p.state IN ('PENDING', 'FAILED'))
    LIMIT @max_rows
    FOR UPDATE SKIP LOCKED
) AS due
WHERE r.generation = due.generation AND r.msg_id = due.msg_id;

-- name: DropIdentities :execrows
-- Identities past their own retention. Served by msg_identity_bound_at_idx.
DELETE FROM msg_identity i USING (
    SELECT o.identity_key FROM msg_identity o WHERE o.bound_at < @before LIMIT @max_rows FOR UPDATE SKIP LOCKED
) AS due
WHERE i.identity_key = due.identity_key;
