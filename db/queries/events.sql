-- The outbox (design §7). What waits and what is dead is found by event_span, however many events are sent (decision 0021). Whoever
-- goes from spans to events does it span by span, each with a LIMIT: joined freely, PostgreSQL would read the whole table when it
-- believes that few events wait.

-- name: EventIDs :one
-- Ids for new events, ascending. Only under PIPELINE_LOCK is the order of ids the order of commits.
SELECT array_agg(nextval('msg_event_event_id_seq'))::bigint[] AS ids FROM generate_series(1, @n::integer);

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
-- The first span of a target that ends after an event. Served by event_span_pkey.
SELECT first_id FROM event_span
WHERE target = @target AND state = 'PENDING' AND first_id > sqlc.arg('after')::bigint - 1024 AND last_id > @after
ORDER BY first_id LIMIT 1;

-- name: EventSpans :many
-- The first spans of a target that end after an event. Served by event_span_pkey.
SELECT first_id, last_id, amount FROM event_span
WHERE target = @target AND state = 'PENDING' AND first_id > sqlc.arg('after')::bigint - 1024 AND last_id > @after
ORDER BY first_id LIMIT @max_rows;

-- name: DropEmptySpans :execrows
-- Spans of a target and state, of those that may have events from … to, in which none is any more. Anybody may do so at any time:
-- an event that comes to wait meanwhile has a span of its own. The newest event is looked for first: it is the last to be sent.
-- What somebody else is dropping is left to him. Served by event_span_pkey and msg_event_pkey, the rows by their places.
DELETE FROM event_span d WHERE d.ctid = ANY (ARRAY(
    SELECT s.ctid FROM event_span s
    WHERE s.target = @target AND s.state = @state AND s.first_id BETWEEN sqlc.arg('from_id')::bigint - 1023 AND @to_id::bigint
      AND (SELECT e.event_id FROM msg_event e
           WHERE e.event_id BETWEEN s.first_id AND s.last_id AND e.target = s.target AND e.state = s.state
           ORDER BY e.event_id DESC LIMIT 1) IS NULL
    FOR UPDATE SKIP LOCKED));

-- name: WaitingEvents :many
-- The oldest events of a target that are not sent, within ranges that ascend and do not touch; without their payloads. Served by
-- the primary key.
SELECT e.event_id, e.flid, e.next_attempt_at, e.created_at
FROM (SELECT unnest(@firsts::bigint[]) AS first_id, unnest(@lasts::bigint[]) AS last_id) r
CROSS JOIN LATERAL (
    SELECT m.event_id, m.flid, m.next_attempt_at, m.created_at
    FROM msg_event m
    WHERE m.event_id BETWEEN r.first_id AND r.last_id AND m.target = @target AND m.state = 'PENDING'
    ORDER BY m.event_id LIMIT @max_rows
) e
ORDER BY e.event_id LIMIT @max_rows;

-- name: PendingEvents :many
-- WaitingEvents with all that is sent.
SELECT e.event_id, e.target, e.msg_id, e.generation, e.flid, e.partition_key, e.event_type, e.state_version, e.kind, e.sndr, e.payload,
       e.received_at, e.attempts, e.next_attempt_at
FROM (SELECT unnest(@firsts::bigint[]) AS first_id, unnest(@lasts::bigint[]) AS last_id) r
CROSS JOIN LATERAL (
    SELECT m.event_id, m.target, m.msg_id, m.generation, m.flid, m.partition_key, m.event_type, m.state_version, m.kind, m.sndr,
           m.payload, m.received_at, m.attempts, m.next_attempt_at
    FROM msg_event m
    WHERE m.event_id BETWEEN r.first_id AND r.last_id AND m.target = @target AND m.state = 'PENDING'
    ORDER BY m.event_id LIMIT @max_rows
) e
ORDER BY e.event_id LIMIT @max_rows;

-- name: EventsByID :many
-- Of the events named, those not sent. Served by the primary key.
SELECT event_id, target, msg_id, generation, flid, partition_key, event_type, state_version, kind, sndr, payload, received_at,
       attempts, next_attempt_at
FROM msg_event WHERE event_id = ANY(@ids::bigint[]) AND state = 'PENDING' ORDER BY event_id;

-- name: MarkEventsSent :execrows
-- Where each acknowledged event lies. Rows already SENT stay as they are. Served by the primary key; no index has anything of what
-- changes, so that the row is updated in place (decision 0021).
UPDATE msg_event e SET state = 'SENT', sent_at = @now, kafka_partition = x.part, kafka_offset = x.off,
    next_attempt_at = NULL, last_error = NULL
FROM (SELECT unnest(@ids::bigint[]) AS event_id, unnest(@partitions::integer[]) AS part, unnest(@offsets::bigint[]) AS off) x
WHERE e.event_id = x.event_id AND e.state = 'PENDING';

-- name: MarkEventsSuperseded :execrows
-- Events that a newer one of the same flight stood for. Served by the primary key, as above.
UPDATE msg_event e SET state = 'SENT', sent_at = @now, superseded_by = x.newer, next_attempt_at = NULL, last_error = NULL
FROM (SELECT unnest(@ids::bigint[]) AS event_id, unnest(@newer::bigint[]) AS newer) x
WHERE e.event_id = x.event_id AND e.state = 'PENDING';

-- name: OvertakenEvents :many
-- Events that died and are older than what their flight's consumers have now. Nothing is dead, nearly always: then this is one
-- look into event_span_pkey.
SELECT DISTINCT ON (e.event_id) e.event_id, x.newer::bigint AS newer
FROM event_span s
CROSS JOIN LATERAL (
    SELECT m.event_id, m.flid FROM msg_event m
    WHERE m.event_id BETWEEN s.first_id AND s.last_id AND m.target = s.target AND m.state = 'DEAD'
    ORDER BY m.event_id LIMIT 1024
) e
JOIN (SELECT unnest(@flids::bigint[]) AS flid, unnest(@newer::bigint[]) AS newer) x ON x.flid = e.flid AND x.newer > e.event_id
WHERE s.target = @target AND s.state = 'DEAD'
ORDER BY e.event_id, x.newer;

-- name: CloseDeadEvents :execrows
-- Dead events that must never go out any more, also when an operator sends the dead again. Served by the primary key.
UPDATE msg_event e SET state = 'SENT', sent_at = @now, superseded_by = x.newer
FROM (SELECT unnest(@ids::bigint[]) AS event_id, unnest(@newer::bigint[]) AS newer) x
WHERE e.event_id = x.event_id AND e.state = 'DEAD';

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
-- How a target stands. The events of the first spans are counted, up to some ten thousand that wait; of spans behind them, where
-- nobody has come yet, it is known how many came in. oldest is the year 1 when nothing waits. Served by event_span_pkey and
-- msg_event_pkey.
WITH span AS MATERIALIZED (
    SELECT f.first_id, f.last_id, f.span_id
    FROM (SELECT s.first_id, s.last_id, s.span_id, sum(s.amount) OVER (ORDER BY s.first_id, s.span_id) AS upto
          FROM (SELECT p.first_id, p.last_id, p.span_id, p.amount FROM event_span p
                WHERE p.target = @target AND p.state = 'PENDING' ORDER BY p.first_id, p.span_id LIMIT 10000) s) f
    WHERE f.upto <= 10000
), waiting AS MATERIALIZED (
    SELECT DISTINCT e.event_id, e.created_at
    FROM span s
    CROSS JOIN LATERAL (
        SELECT m.event_id, m.created_at FROM msg_event m
        WHERE m.event_id BETWEEN s.first_id AND s.last_id AND m.target = @target AND m.state = 'PENDING'
        ORDER BY m.event_id LIMIT 1024
    ) e
)
SELECT ((SELECT count(*) FROM waiting w)
      + (SELECT coalesce(sum(f.amount), 0) FROM event_span f
         WHERE f.target = @target AND f.state = 'PENDING'
           AND (f.first_id, f.span_id) > (SELECT l.first_id, l.span_id FROM span l ORDER BY l.first_id DESC, l.span_id DESC LIMIT 1)))::bigint AS pending,
       (SELECT count(DISTINCT e.event_id)
        FROM event_span d
        CROSS JOIN LATERAL (
            SELECT m.event_id FROM msg_event m
            WHERE m.event_id BETWEEN d.first_id AND d.last_id AND m.target = d.target AND m.state = 'DEAD'
            ORDER BY m.event_id LIMIT 1024
        ) e
        WHERE d.target = @target AND d.state = 'DEAD')::bigint AS dead,
       coalesce((SELECT o.created_at FROM waiting o ORDER BY o.event_id LIMIT 1),
                timestamptz '0001-01-01 00:00:00+00')::timestamptz AS oldest;

-- name: DeadEvents :many
-- What an operator may send again. Served by event_span_pkey and msg_event_pkey.
SELECT DISTINCT e.event_id
FROM event_span s
CROSS JOIN LATERAL (
    SELECT m.event_id FROM msg_event m
    WHERE m.event_id BETWEEN s.first_id AND s.last_id AND m.target = s.target AND m.state = 'DEAD'
    ORDER BY m.event_id LIMIT 1024
) e
WHERE s.state = 'DEAD' AND (sqlc.narg('target')::text IS NULL OR s.target = sqlc.narg('target'))
  AND e.event_id BETWEEN @from_id::bigint AND @to_id::bigint
ORDER BY e.event_id LIMIT @max_rows;

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
-- Served by the primary key; the newer one of the flight by msg_event_flid_idx.
SELECT e.event_id, e.target, e.msg_id, e.generation, e.flid, e.state_version, e.kind, e.sndr, e.state,
       coalesce((SELECT n.event_id FROM msg_event n
                 WHERE n.target = 'KAFKA:schd' AND e.target = n.target AND n.state = 'PENDING' AND n.flid = e.flid AND n.event_id > e.event_id
                 ORDER BY n.flid DESC, n.event_id DESC LIMIT 1), 0)::bigint AS newer_waits
FROM msg_event e WHERE e.event_id = ANY(@ids::bigint[]) ORDER BY e.event_id FOR UPDATE OF e;

-- name: RequeueEvents :execrows
-- Served by the primary key.
UPDATE msg_event SET state = 'PENDING', attempts = 0, next_attempt_at = NULL WHERE event_id = ANY(@ids::bigint[]) AND state = 'DEAD';
