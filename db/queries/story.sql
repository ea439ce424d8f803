-- What happened to one message besides its row (design §10). Each query is served by a primary key, msg_event_msg_id_idx,
-- msg_event_hst_msg_id_idx or flight_change_msg_id_idx.

-- name: MessageFailures :one
-- Its failed tries, the first first.
SELECT coalesce((SELECT p.failures FROM proc_state p WHERE p.msg_id = @msg_id AND p.generation = @generation),
                (SELECT h.failures FROM proc_state_hst h WHERE h.generation = @generation AND h.msg_id = @msg_id), '[]')::jsonb AS failures;

-- name: MessageText :many
-- Whether its text is kept, and since when.
SELECT r.size_bytes, r.created_at, (length(r.body) = 0)::boolean AS oversize FROM msg_raw r WHERE r.generation = @generation AND r.msg_id = @msg_id;

-- name: IdentityOwner :many
SELECT i.identity_key, i.msg_id, i.generation, i.dttm, i.bound_at, i.rebinds FROM msg_identity i WHERE i.identity_key = @identity_key;

-- name: MessageEvents :many
-- What it made, sent or not, archived or not; without payloads.
SELECT e.event_id, e.target, e.flid, e.event_type, e.state_version, e.state, e.attempts, e.last_error, e.superseded_by, e.kafka_partition,
       e.kafka_offset, e.created_at, e.sent_at, false AS archived
FROM msg_event e WHERE e.msg_id = @msg_id AND e.generation = @generation
UNION ALL
SELECT h.event_id, h.target, h.flid, h.event_type, h.state_version, h.state, h.attempts, h.last_error, h.superseded_by, h.kafka_partition,
       h.kafka_offset, h.created_at, h.sent_at, true
FROM msg_event_hst h WHERE h.generation = @generation AND h.msg_id = @msg_id
ORDER BY event_id
LIMIT @max_rows;

-- name: MessageCounts :one
-- How much it did in all: a schedule touches thousands of flights. pending_targets are those its events still wait for.
SELECT (SELECT count(*) FROM flight_change c WHERE c.msg_id = @msg_id AND c.generation = @generation)::bigint AS changes,
       ((SELECT count(*) FROM msg_event e WHERE e.msg_id = @msg_id AND e.generation = @generation)
      + (SELECT count(*) FROM msg_event_hst h WHERE h.generation = @generation AND h.msg_id = @msg_id))::bigint AS events,
       ARRAY(SELECT DISTINCT e.target FROM msg_event e
             WHERE e.msg_id = @msg_id AND e.generation = @generation AND e.state = 'PENDING')::text[] AS pending_targets;
