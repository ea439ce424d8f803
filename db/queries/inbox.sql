-- What is taken over from the mailbox, and how far (design §4).

-- name: Inbox :many
-- The cursor and the holes above it, one row a hole and at least one. Served by the primary keys.
SELECT c.generation, c.committed_up_to, c.watermark_received_at, c.id_step, c.seeded_at, c.stopped_reason, c.last_polled_at,
       h.first_id, h.last_id, h.first_seen_at
FROM inbox_cursor c
LEFT JOIN inbox_hole h ON h.lane = c.lane AND h.generation = c.generation AND h.released_at IS NULL
WHERE c.lane = @lane
ORDER BY h.first_id;

-- name: LockInbox :one
-- Second lock of every round, after the lease.
SELECT generation, committed_up_to, stopped_reason FROM inbox_cursor WHERE lane = @lane FOR UPDATE;

-- name: SaveInbox :exec
UPDATE inbox_cursor SET committed_up_to = @committed_up_to, watermark_received_at = @watermark_received_at, id_step = @id_step,
    last_polled_at = @now, updated_at = @now
WHERE lane = @lane;

-- name: InboxPolled :exec
-- The mailbox could be read and had nothing new.
UPDATE inbox_cursor SET last_polled_at = @now WHERE lane = @lane;

-- name: SeedInbox :execrows
-- Cut-over: once, and only while nothing has been taken over and no hole passed (design §4). A hole that is being waited
-- for below the first message is no obstacle: the log of the first start suggests just this (contract §8.6).
UPDATE inbox_cursor c SET committed_up_to = @committed_up_to, watermark_received_at = @watermark_received_at, seeded_at = @now,
    seeded_from = @seeded_from, updated_at = @now
WHERE c.lane = @lane AND c.seeded_at IS NULL AND c.committed_up_to = 0
  AND NOT EXISTS (SELECT 1 FROM proc_state) AND NOT EXISTS (SELECT 1 FROM proc_state_hst)
  AND NOT EXISTS (SELECT 1 FROM inbox_hole h WHERE h.lane = c.lane AND h.released_at IS NOT NULL);

-- name: StopInbox :execrows
-- Nothing more is taken over until an operator reseeds (K14). What was registered ahead of the watermark is released: the
-- holes before it will never be filled with what was meant, and a reseed needs everything finished.
UPDATE inbox_cursor c SET stopped_reason = @stopped_reason, stopped_at = @now, updated_at = @now,
    committed_up_to = greatest(c.committed_up_to, (SELECT max(p.msg_id) FROM proc_state p WHERE p.state IN ('PENDING', 'FAILED')))
WHERE c.lane = @lane AND c.generation = @generation AND c.stopped_reason IS NULL;

-- name: CloseGeneration :one
-- Finished messages go to the archive, with the marks they still owe given up. Ids are about to be given out again, so
-- that none may stay behind: the caller looks at what is left. claimed are marks being written at this moment.
WITH moved AS (
    DELETE FROM proc_state p WHERE p.state IN ('SUCCEEDED', 'SKIPPED', 'DEAD')
    RETURNING p.msg_id, p.generation, p.state, p.error_class, p.root_error_class, p.last_error, p.skip_reason, p.identity_key, p.attempts,
        p.next_attempt_at, p.processing_started_at, p.received_at, p.created_at, p.updated_at, p.finished_at, p.content_hash,
        p.sndr, p.type, p.styp, p.seqn, p.dttm, p.late, p.backfill_next_at, p.backfill_at, p.backfill_attempts, p.backfill_error,
        p.backfill_abandoned_at, p.backfill_abandoned_reason, p.replay_count, p.identity_reuse, p.failures,
        p.backfill_next_at IS NOT NULL AND p.backfill_abandoned_at IS NULL AS owed,
        p.backfill_abandoned_at IS NULL AND coalesce(p.backfill_attempts > 0 AND p.backfill_error IS NULL AND p.backfill_next_at > @now, false) AS claimed
), kept AS (
    INSERT INTO proc_state_hst (msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, attempts,
        next_attempt_at, processing_started_at, received_at, created_at, updated_at, finished_at, content_hash,
        sndr, type, styp, seqn, dttm, late, backfill_next_at, backfill_at, backfill_attempts, backfill_error,
        backfill_abandoned_at, backfill_abandoned_reason, replay_count, identity_reuse, failures, archived_at)
    SELECT msg_id, generation, state, error_class, root_error_class, last_error, skip_reason, identity_key, attempts,
        next_attempt_at, processing_started_at, received_at, created_at, updated_at, finished_at, content_hash,
        sndr, type, styp, seqn, dttm, late, backfill_next_at, backfill_at, backfill_attempts, backfill_error,
        CASE WHEN owed THEN @now ELSE backfill_abandoned_at END,
        CASE WHEN owed THEN @reason::text ELSE backfill_abandoned_reason END, replay_count, identity_reuse, failures, @now
    FROM moved
)
SELECT count(*) AS moved, count(*) FILTER (WHERE owed) AS abandoned,
       count(*) FILTER (WHERE claimed) AS claimed
FROM moved;

-- name: OpenGeneration :one
-- The lane begins anew with ids of the next generation. Its row is locked.
UPDATE inbox_cursor SET generation = generation + 1, committed_up_to = @committed_up_to, watermark_received_at = @watermark_received_at,
    seeded_at = @now, seeded_from = @seeded_from, stopped_reason = NULL, stopped_at = NULL, updated_at = @now
WHERE lane = @lane
RETURNING generation;

-- name: DeleteHoles :exec
-- The holes of ids that are over.
DELETE FROM inbox_hole WHERE lane = @lane;

-- name: PrunePassedHoles :execrows
-- Passed holes are remembered so long, and so many of the newest. Served by the primary key.
DELETE FROM inbox_hole h
WHERE h.lane = @lane AND h.generation = @generation AND h.released_at IS NOT NULL
  AND (h.released_at < @released_before OR h.first_id <= coalesce((
      SELECT n.first_id FROM inbox_hole n WHERE n.lane = @lane AND n.generation = @generation AND n.released_at IS NOT NULL
      ORDER BY n.first_id DESC LIMIT 1 OFFSET @keep::integer), 0));

-- name: DeleteOpenHoles :exec
DELETE FROM inbox_hole WHERE lane = @lane AND generation = @generation AND released_at IS NULL;

-- name: DeletePassedHoles :exec
DELETE FROM inbox_hole
WHERE lane = @lane AND generation = @generation AND released_at IS NOT NULL AND first_id = ANY(@first_ids::bigint[]);

-- name: InsertHoles :exec
-- released_at NULL: they hold the watermark; else they were passed then.
INSERT INTO inbox_hole (lane, generation, first_id, last_id, first_seen_at, released_at)
SELECT @lane, @generation, h.first_id, h.last_id, h.first_seen_at, sqlc.narg(released_at)::timestamptz
FROM (SELECT unnest(@first_ids::bigint[]) AS first_id, unnest(@last_ids::bigint[]) AS last_id,
             unnest(@first_seen_at::timestamptz[]) AS first_seen_at) AS h;

-- name: PassedHoles :many
-- Where late rows may turn up; the newest ones. Served by the primary key.
SELECT first_id, last_id, first_seen_at, released_at FROM inbox_hole
WHERE lane = @lane AND generation = @generation AND released_at IS NOT NULL
ORDER BY first_id DESC LIMIT @max_rows;

-- name: EnqueueMessages :many
-- New rows become PENDING; those known already are left alone (K08). Gives the ids that were new. The year 1 stands for
-- no received time, a negative size for a text that was gone.
WITH given AS (
    SELECT unnest(@ids::bigint[]) AS msg_id, unnest(@received_at::timestamptz[]) AS received_at,
           unnest(@bodies::bytea[]) AS body, unnest(@sizes::integer[]) AS size_bytes
), queued AS (
    INSERT INTO proc_state (msg_id, generation, state, received_at, late, created_at, updated_at)
    SELECT g.msg_id, @generation, 'PENDING', nullif(g.received_at, '0001-01-01 00:00:00+00'), @late, @now, @now FROM given g
    ON CONFLICT (msg_id) DO NOTHING
    RETURNING msg_id
), kept AS (
    INSERT INTO msg_raw (msg_id, generation, body, size_bytes, created_at)
    SELECT g.msg_id, @generation, g.body, g.size_bytes, @now FROM given g WHERE g.size_bytes >= 0
    ON CONFLICT (generation, msg_id) DO NOTHING
)
SELECT msg_id FROM queued;

-- name: RegisterMessage :execrows
-- The compat endpoint's own row, at once and ahead of the watermark (design §4). Nothing at or below it: there an id is
-- either taken over already, or late, or a sign that ids run backwards, and that is the poller's to find out. The lock
-- keeps the row's generation true until the commit.
INSERT INTO proc_state (msg_id, generation, state, received_at, created_at, updated_at)
SELECT @msg_id, c.generation, 'PENDING', sqlc.narg(received_at), @now, @now
FROM inbox_cursor c WHERE c.lane = @lane AND c.committed_up_to < @msg_id AND c.stopped_reason IS NULL
FOR SHARE OF c
ON CONFLICT (msg_id) DO NOTHING;

-- name: InsertRaw :exec
INSERT INTO msg_raw (msg_id, generation, body, size_bytes, created_at)
SELECT p.msg_id, p.generation, @body, @size_bytes, @now FROM proc_state p WHERE p.msg_id = @msg_id
ON CONFLICT (generation, msg_id) DO NOTHING;

-- name: KnownMessages :many
-- What we hold of ids, also of archived ones. Served by the primary keys.
SELECT msg_id, received_at FROM proc_state p WHERE p.generation = @generation AND p.msg_id = ANY(@ids::bigint[])
UNION ALL
SELECT msg_id, received_at FROM proc_state_hst h WHERE h.generation = @generation AND h.msg_id = ANY(@ids::bigint[]);

-- name: InboxRuns :one
-- Whether the lane takes anything over; one that has no row yet does.
SELECT NOT EXISTS (SELECT 1 FROM inbox_cursor WHERE lane = @lane AND stopped_reason IS NOT NULL) AS runs;
