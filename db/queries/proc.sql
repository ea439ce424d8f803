-- The head of the line (design §3).

-- name: HeadRows :many
-- The next messages after an id in order, never past the watermark (O1). Served by proc_state_unfinished_idx; size_bytes lets the
-- caller bound what it takes into memory.
SELECT p.msg_id, p.generation, p.state, p.attempts, p.next_attempt_at, p.processing_started_at, p.received_at, p.created_at,
       p.identity_key, coalesce(r.size_bytes, 0)::bigint AS size_bytes
FROM proc_state p
LEFT JOIN msg_raw r ON r.generation = p.generation AND r.msg_id = p.msg_id
WHERE p.state IN ('PENDING', 'FAILED') AND p.msg_id > @after::bigint
  AND p.msg_id <= (SELECT c.committed_up_to FROM inbox_cursor c WHERE c.lane = @lane)
ORDER BY p.msg_id
LIMIT @max_rows;

-- name: UnfinishedAmong :one
-- How many of the messages from … to, both inclusive, are unfinished. Served by proc_state_unfinished_idx; what was finished before
-- stays in it until a vacuum and is not stepped over.
SELECT count(*) AS amount FROM proc_state WHERE state IN ('PENDING', 'FAILED') AND msg_id BETWEEN sqlc.arg('from')::bigint AND sqlc.arg('to')::bigint;

-- name: HeadPending :one
SELECT EXISTS (
    SELECT 1 FROM proc_state p
    WHERE p.state IN ('PENDING', 'FAILED')
      AND p.msg_id <= (SELECT c.committed_up_to FROM inbox_cursor c WHERE c.lane = @lane)
) AS pending;

-- name: ChargeAttempts :exec
-- The attempt is on record before the work begins (O5, K23).
UPDATE proc_state SET attempts = attempts + 1, processing_started_at = coalesce(processing_started_at, @now), updated_at = @now
WHERE msg_id = ANY(@ids::bigint[]) AND state IN ('PENDING', 'FAILED');

-- name: RefundAttempts :exec
-- Of messages that were charged and could not be read: nothing was tried. Served by the primary key.
UPDATE proc_state SET attempts = attempts - 1, updated_at = @now,
    processing_started_at = CASE WHEN attempts > 1 THEN processing_started_at END
WHERE msg_id = ANY(@ids::bigint[]) AND finished_at IS NULL AND attempts > 0;

-- name: RawTexts :many
SELECT msg_id, body, size_bytes FROM msg_raw WHERE generation = @generation AND msg_id = ANY(@ids::bigint[]);

-- name: FinishMessages :execrows
-- Where each message of a batch goes, with its mark owed, in one statement (O6). Only unfinished rows: a second run of
-- the same work changes nothing (K06). reset: the message was charged but not tried, and is not to pay for it. Served by
-- the primary key; asked for by state, PostgreSQL would go through the whole backlog (finished_at says the same). Arrays, for
-- a JSON of the same rows costs three times as much; empty texts and the year 1 are NULL.
UPDATE proc_state p SET
    state = x.state,
    attempts = CASE WHEN x.reset THEN greatest(p.attempts - 1, 0) ELSE p.attempts END,
    processing_started_at = CASE WHEN x.reset AND p.attempts <= 1 THEN NULL ELSE p.processing_started_at END,
    error_class = nullif(x.error_class, ''), root_error_class = nullif(x.root_error_class, ''),
    last_error = nullif(x.last_error, ''), skip_reason = nullif(x.skip_reason, ''),
    failures = CASE WHEN x.error_class = '' THEN p.failures
        ELSE CASE WHEN jsonb_array_length(p.failures) >= 50 THEN p.failures - 0 ELSE coalesce(p.failures, '[]') END || jsonb_build_object(
            'at', @now::timestamptz, 'replay', p.replay_count, 'attempt', p.attempts, 'state', x.state,
            'class', coalesce(nullif(x.root_error_class, ''), x.error_class), 'error', left(nullif(x.last_error, ''), 1000)) END,
    identity_key = coalesce(p.identity_key, nullif(x.identity_key, '')),
    identity_reuse = coalesce(nullif(x.identity_reuse, ''), p.identity_reuse),
    next_attempt_at = nullif(x.next_attempt_at, timestamptz '0001-01-01 00:00:00+00'),
    finished_at = CASE WHEN x.finished THEN @now END, updated_at = @now,
    backfill_next_at = CASE WHEN x.owed THEN @now END,
    content_hash = CASE WHEN x.has_meta THEN x.content_hash ELSE p.content_hash END,
    sndr = CASE WHEN x.has_meta THEN x.sndr ELSE p.sndr END,
    type = CASE WHEN x.has_meta THEN x.type ELSE p.type END, styp = CASE WHEN x.has_meta THEN x.styp ELSE p.styp END,
    seqn = CASE WHEN x.has_meta THEN x.seqn ELSE p.seqn END, dttm = CASE WHEN x.has_meta THEN x.dttm ELSE p.dttm END
FROM (SELECT unnest(@ids::bigint[]) AS msg_id, unnest(@states::text[]) AS state, unnest(@resets::boolean[]) AS reset,
             unnest(@finished::boolean[]) AS finished, unnest(@owed::boolean[]) AS owed, unnest(@error_classes::text[]) AS error_class,
             unnest(@root_error_classes::text[]) AS root_error_class, unnest(@last_errors::text[]) AS last_error,
             unnest(@skip_reasons::text[]) AS skip_reason, unnest(@next_attempts_at::timestamptz[]) AS next_attempt_at,
             unnest(@identity_keys::text[]) AS identity_key, unnest(@identity_reuses::text[]) AS identity_reuse,
             unnest(@have_meta::boolean[]) AS has_meta, unnest(@content_hashes::bytea[]) AS content_hash, unnest(@sndrs::text[]) AS sndr,
             unnest(@types::text[]) AS type, unnest(@styps::text[]) AS styp, unnest(@seqns::bigint[]) AS seqn,
             unnest(@dttms::timestamptz[]) AS dttm) x
WHERE p.msg_id = x.msg_id AND p.finished_at IS NULL;

-- name: Identities :many
SELECT identity_key, msg_id, generation, dttm, content_hash FROM msg_identity WHERE identity_key = ANY(@keys::text[]);

-- name: BindIdentities :exec
-- First binding, or a new one after the sender's counter has wrapped (design §5).
INSERT INTO msg_identity (identity_key, msg_id, generation, dttm, content_hash, bound_at)
SELECT x.identity_key, x.msg_id, x.generation, x.dttm, x.content_hash, @now
FROM (SELECT unnest(@identity_keys::text[]) AS identity_key, unnest(@msg_ids::bigint[]) AS msg_id, unnest(@generations::integer[]) AS generation,
             unnest(@dttms::timestamptz[]) AS dttm, unnest(@content_hashes::bytea[]) AS content_hash) x
ON CONFLICT (identity_key) DO UPDATE SET msg_id = excluded.msg_id, generation = excluded.generation, dttm = excluded.dttm,
    content_hash = excluded.content_hash, bound_at = excluded.bound_at, rebinds = msg_identity.rebinds + 1;

-- name: InsertSnapLog :exec
INSERT INTO schd_snap_log (msg_id, generation, kind, scope_start, scope_end, records, created, updated, unchanged, recv_at)
VALUES (@msg_id, @generation, @kind, @scope_start, @scope_end, @records, @created, @updated, @unchanged, @recv_at);

-- name: Backlog :one
-- What is unfinished, by proc_state_unfinished_idx; the oldest by when we took it over.
SELECT count(*) AS unfinished, coalesce(min(p.created_at), @now)::timestamptz AS oldest
FROM proc_state p WHERE p.state IN ('PENDING', 'FAILED');
