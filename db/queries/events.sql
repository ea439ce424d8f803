-- The outbox (design §7). Hot reads are served by msg_event_pending_idx (target, event_id) WHERE state = 'PENDING',
-- however many finished rows there are.

-- name: EventIDs :many
-- Ids for new events, ascending. Only under PIPELINE_LOCK is the order of ids the order of commits.
SELECT nextval('msg_event_event_id_seq')::bigint AS event_id FROM generate_series(1, @n::integer);

-- name: InsertEvents :exec
-- An empty payload is a tombstone's; a received time of the year 1 is unknown.
INSERT INTO msg_event (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload,
                       received_at, created_at)
SELECT x.event_id, x.target, x.msg_id, x.generation, x.flid, x.partition_key, x.event_type, x.state_version, x.kind, x.sndr,
       nullif(x.payload, '')::json, nullif(x.received_at, timestamptz '0001-01-01 00:00:00+00'), @now
FROM (SELECT unnest(@event_ids::bigint[]) AS event_id, unnest(@targets::text[]) AS target, unnest(@msg_ids::bigint[]) AS msg_id,
             unnest(@generations::integer[]) AS generation, unnest(@flids::bigint[]) AS flid,
             unnest(@partition_keys::text[]) AS partition_key, unnest(@event_types::text[]) AS event_type,
             unnest(@state_versions::bigint[]) AS state_version, unnest(@kinds::text[]) AS kind, unnest(@sndrs::text[]) AS sndr,
             unnest(@payloads::text[]) AS payload, unnest(@received_ats::timestamptz[]) AS received_at) x;

-- name: EventsWait :many
-- The oldest event after one that is not sent. Not EXISTS: while PostgreSQL's statistics say that most events wait, it looks for
-- any through the whole table.
SELECT event_id FROM msg_event WHERE target = @target AND state = 'PENDING' AND event_id > @after::bigint ORDER BY event_id LIMIT 1;

-- name: WaitingEvents :many
-- The oldest events of a target that are not sent, without their payloads.
SELECT event_id, flid, next_attempt_at, created_at
FROM msg_event WHERE target = @target AND state = 'PENDING' ORDER BY event_id LIMIT @max_rows;

-- name: PendingEvents :many
-- The oldest events of a target after one that are not sent. What was sent stays in the index until a vacuum: after spares
-- stepping over it.
SELECT event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload, received_at,
       attempts, next_attempt_at
FROM msg_event WHERE target = @target AND state = 'PENDING' AND event_id > @after::bigint ORDER BY event_id LIMIT @max_rows;

-- name: EventsByID :many
-- Of the events named, those not sent. Served by the primary key.
SELECT event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload, received_at,
       attempts, next_attempt_at
FROM msg_event WHERE event_id = ANY(@ids::bigint[]) AND state = 'PENDING' ORDER BY event_id;

-- name: MarkEventsSent :execrows
-- Where each acknowledged event lies. Rows already SENT stay as they are. Served by the primary key; asked
-- for as PENDING, PostgreSQL would go through all that wait when it believes they are few.
UPDATE msg_event e SET state = 'SENT', sent_at = @now, kafka_partition = x.part, kafka_offset = x.off,
    next_attempt_at = NULL, last_error = NULL
FROM (SELECT unnest(@ids::bigint[]) AS event_id, unnest(@partitions::integer[]) AS part, unnest(@offsets::bigint[]) AS off) x
WHERE e.event_id = x.event_id AND e.state NOT IN ('SENT', 'DEAD');

-- name: MarkEventsSuperseded :execrows
-- Events that a newer one of the same flight stood for. Served by the primary key, as above.
UPDATE msg_event e SET state = 'SENT', sent_at = @now, superseded_by = x.newer, next_attempt_at = NULL, last_error = NULL
FROM (SELECT unnest(@ids::bigint[]) AS event_id, unnest(@newer::bigint[]) AS newer) x
WHERE e.event_id = x.event_id AND e.state NOT IN ('SENT', 'DEAD');

-- name: CloseDeadEvents :execrows
-- Events that died and are older than what their flight's consumers have now: they must never go out any more, also when
-- an operator sends the dead again. Served by msg_event_dead_idx.
UPDATE msg_event e SET state = 'SENT', sent_at = @now, superseded_by = x.newer
FROM (SELECT unnest(@flids::bigint[]) AS flid, unnest(@newer::bigint[]) AS newer) x
WHERE e.target = @target AND e.state = 'DEAD' AND e.flid = x.flid AND e.event_id < x.newer;

-- name: MarkEventsFailed :execrows
-- Events the broker refused for their own fault.
UPDATE msg_event e SET state = x.state, attempts = e.attempts + 1, next_attempt_at = x.next_attempt_at, last_error = x.last_error, refusal = x.refusal
FROM jsonb_to_recordset(@rows::jsonb) AS x(event_id bigint, state text, next_attempt_at timestamptz, last_error text, refusal text)
WHERE e.event_id = x.event_id AND e.state = 'PENDING';

-- name: ClaimTerm :one
-- The next epoch of the producer the target has, or the producer offered. Only under the role's fence.
INSERT INTO delivery_term AS d (lane, target, cluster_id, producer_id, epoch)
VALUES (@lane, @target, @cluster_id, @producer_id, @epoch)
ON CONFLICT (lane, target) DO UPDATE SET
    cluster_id  = excluded.cluster_id,
    producer_id = CASE WHEN d.cluster_id = excluded.cluster_id AND d.epoch < 32767 THEN d.producer_id ELSE excluded.producer_id END,
    epoch       = CASE WHEN d.cluster_id = excluded.cluster_id AND d.epoch < 32767 THEN d.epoch + 1 ELSE excluded.epoch END
RETURNING cluster_id, producer_id, epoch;

-- name: EventBacklog :one
-- What the metrics say of a target. Index-only on the two partial indexes, but for the time of the oldest, which is the
-- year 1 when nothing waits.
SELECT (SELECT count(*) FROM msg_event p WHERE p.target = @target AND p.state = 'PENDING')::bigint AS pending,
       (SELECT count(*) FROM msg_event d WHERE d.target = @target AND d.state = 'DEAD')::bigint AS dead,
       coalesce((SELECT o.created_at FROM msg_event o WHERE o.target = @target AND o.state = 'PENDING' ORDER BY o.event_id LIMIT 1),
                timestamptz '0001-01-01 00:00:00+00')::timestamptz AS oldest;

-- name: DeadEvents :many
-- What an operator may send again. Served by msg_event_dead_idx.
SELECT event_id FROM msg_event
WHERE state = 'DEAD' AND (sqlc.narg('target')::text IS NULL OR target = sqlc.narg('target'))
  AND event_id BETWEEN @from_id AND @to_id
ORDER BY event_id LIMIT @max_rows;

-- name: RestoreDeadEvents :exec
-- Out of the archive, as they were. Served by its primary key, once for each generation of ids there has been.
WITH back AS (
    DELETE FROM msg_event_hst h
    WHERE h.event_id = ANY(@ids::bigint[]) AND h.state = 'DEAD'
      AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))))
    RETURNING h.event_id, h.target, h.msg_id, h.generation, h.flid, h.partition_key, h.event_type, h.state_version, h.kind, h.sndr, h.payload,
        h.state, h.attempts, h.next_attempt_at, h.last_error, h.refusal, h.superseded_by, h.kafka_partition, h.kafka_offset, h.received_at, h.created_at, h.sent_at
)
INSERT INTO msg_event (event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload,
    state, attempts, next_attempt_at, last_error, refusal, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at)
SELECT event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload,
    state, attempts, next_attempt_at, last_error, refusal, superseded_by, kafka_partition, kafka_offset, received_at, created_at, sent_at
FROM back;

-- name: ArchivedEvents :many
-- Served by the primary key, once for each generation of ids there has been.
SELECT h.event_id, h.target, h.state, h.flid FROM msg_event_hst h
WHERE h.event_id = ANY(@ids::bigint[])
  AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))));

-- name: LockEvents :many
-- Served by the primary key; the newer one of the flight by msg_event_pending_idx.
SELECT e.event_id, e.target, e.msg_id, e.generation, e.flid, e.state_version, e.kind, e.sndr, e.state,
       coalesce((SELECT max(n.event_id) FROM msg_event n
                 WHERE n.target = 'KAFKA:schd' AND e.target = n.target AND n.state = 'PENDING' AND n.flid = e.flid AND n.event_id > e.event_id), 0)::bigint AS newer_waits
FROM msg_event e WHERE e.event_id = ANY(@ids::bigint[]) ORDER BY e.event_id FOR UPDATE OF e;

-- name: RequeueEvents :execrows
UPDATE msg_event SET state = 'PENDING', attempts = 0, next_attempt_at = NULL WHERE event_id = ANY(@ids::bigint[]) AND state = 'DEAD';
