-- The processed marks owed to the mailbox (design §8).
--
-- A mark is written into the mailbox between two transactions, so a row under way is claimed: the try is counted, the
-- error of the last one cleared, the next one set past the longest time a try may take. That is how a claim is told from
-- a pause after a failure, which has an error:
--     backfill_attempts > 0 AND backfill_error IS NULL AND backfill_next_at > now
-- Whoever puts a message back (replay) leaves claimed rows alone, and so does whoever resumes or reseeds; each says it as
--     NOT coalesce(backfill_attempts > 0 AND backfill_error IS NULL AND backfill_next_at > @now, false)
-- in the statement that changes the row, whose lock decides who was first. A claim whose worker died runs out by itself.

-- name: ClaimDebts :many
-- In fair rotation: fewest tries first. Served by proc_state_backfill_due_idx. None while the lane is stopped: its ids may be
-- other messages' by now (K14).
UPDATE proc_state p SET backfill_attempts = p.backfill_attempts + 1, backfill_error = NULL, backfill_next_at = @claimed_until
FROM (
    SELECT d.msg_id FROM proc_state d
    WHERE d.backfill_next_at IS NOT NULL AND d.backfill_abandoned_at IS NULL AND d.backfill_next_at <= @now
      AND NOT EXISTS (SELECT 1 FROM inbox_cursor c WHERE c.lane = @lane AND c.stopped_reason IS NOT NULL)
    ORDER BY d.backfill_attempts, d.msg_id
    LIMIT @max_rows
    FOR UPDATE SKIP LOCKED
) AS due
WHERE p.msg_id = due.msg_id
RETURNING p.msg_id, p.generation, p.state, p.skip_reason, p.sndr, p.type, p.styp, p.seqn, p.dttm, p.received_at,
          p.backfill_attempts, p.replay_count;

-- name: SettleDebts :execrows
-- Only debts that are still the same: neither put back nor archived meanwhile. A debt given up stays owed (next_at), but
-- leaves the scan. Empty texts and the year 1 are NULL.
UPDATE proc_state p SET
    backfill_at = nullif(x.at, timestamptz '0001-01-01 00:00:00+00'),
    backfill_next_at = CASE WHEN x.at = timestamptz '0001-01-01 00:00:00+00'
        THEN coalesce(nullif(x.next_at, timestamptz '0001-01-01 00:00:00+00'), @now) END,
    backfill_attempts = x.attempts, backfill_error = nullif(x.error, ''),
    backfill_abandoned_at = nullif(x.abandoned_at, timestamptz '0001-01-01 00:00:00+00'), backfill_abandoned_reason = nullif(x.reason, '')
FROM (SELECT unnest(@ids::bigint[]) AS msg_id, unnest(@generations::integer[]) AS generation, unnest(@replay_counts::integer[]) AS replay_count,
             unnest(@attempts::integer[]) AS attempts, unnest(@ats::timestamptz[]) AS at, unnest(@next_ats::timestamptz[]) AS next_at,
             unnest(@errors::text[]) AS error, unnest(@abandoned_ats::timestamptz[]) AS abandoned_at, unnest(@reasons::text[]) AS reason) x
WHERE p.msg_id = x.msg_id AND p.generation = x.generation AND p.replay_count = x.replay_count
  AND p.state IN ('SUCCEEDED', 'SKIPPED', 'DEAD') AND p.backfill_at IS NULL AND p.backfill_next_at IS NOT NULL;

-- name: ResumeDebts :many
-- An operator has marks tried again from the start. Each id asked for is answered: what became of it and why. A row that is
-- being written at this moment is left to its writer.
WITH resumed AS (
    UPDATE proc_state p SET backfill_attempts = 0, backfill_error = NULL, backfill_abandoned_at = NULL, backfill_abandoned_reason = NULL,
        backfill_next_at = @now
    WHERE p.msg_id = ANY(@ids::bigint[]) AND p.backfill_at IS NULL AND p.backfill_next_at IS NOT NULL
      AND NOT (p.backfill_abandoned_at IS NULL AND coalesce(p.backfill_attempts > 0 AND p.backfill_error IS NULL AND p.backfill_next_at > @now, false))
    RETURNING p.msg_id
)
SELECT i.id::bigint AS msg_id, (p.msg_id IS NOT NULL)::boolean AS known, (r.msg_id IS NOT NULL)::boolean AS resumed,
       coalesce(p.state IN ('PENDING', 'FAILED'), false)::boolean AS unfinished,
       (p.backfill_at IS NOT NULL)::boolean AS written, (p.backfill_next_at IS NOT NULL)::boolean AS owed,
       EXISTS (SELECT 1 FROM proc_state_hst h WHERE h.msg_id = i.id
               AND h.generation = ANY (ARRAY(SELECT generate_series(0, coalesce((SELECT max(c.generation) FROM inbox_cursor c), 0))))) AS archived
FROM unnest(@ids::bigint[]) WITH ORDINALITY AS i(id, ord)
LEFT JOIN proc_state p ON p.msg_id = i.id
LEFT JOIN resumed r ON r.msg_id = i.id
ORDER BY i.ord;

-- name: NextDebt :many
-- When the next mark owed is due; no row when none is owed. Served by proc_state_backfill_due_idx.
SELECT backfill_next_at FROM proc_state WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL
ORDER BY backfill_next_at LIMIT 1;

-- name: LineCrowded :one
-- Whether at least so many messages are unfinished. Served by proc_state_unfinished_idx, whose first entries it counts.
SELECT (count(*) = @crowd::bigint)::boolean AS crowded
FROM (SELECT 1 FROM proc_state WHERE state IN ('PENDING', 'FAILED') ORDER BY msg_id LIMIT @crowd::bigint) AS line;

-- name: DebtPending :one
SELECT EXISTS (SELECT 1 FROM proc_state WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL) AS pending;

-- name: DebtStats :one
-- For the gauges. Served by proc_state_backfill_due_idx.
SELECT count(*) AS owed, coalesce(min(finished_at), @now)::timestamptz AS oldest
FROM proc_state WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL;

-- name: AbandonedDebts :one
SELECT count(*) FROM proc_state WHERE backfill_abandoned_at IS NOT NULL;
