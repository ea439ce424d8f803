-- Reference data (design §9). A list changes in one transaction, so readers see the old one until the new one is complete.

-- name: LockRefSet :one
-- The list's row, made when it is not there; held until the commit, so that batches for one list come one after the other.
INSERT INTO ref_set (rtype) VALUES (@rtype)
ON CONFLICT (rtype) DO UPDATE SET rtype = excluded.rtype
RETURNING floor_generation, floor_msg_id, nextval('ref_batch_id_seq')::bigint AS next_batch_id;

-- name: PutRefRecords :execrows
-- A record is not overwritten by an older message; what comes from no message overwrites everything. Served by the primary key.
INSERT INTO ref_master (rtype, rkey, doc, source, batch_id, refreshed_at, msg_id, generation)
SELECT @rtype, x.rkey, x.doc::jsonb, @source, @batch_id, @now, @msg_id, @generation
FROM (SELECT unnest(@keys::text[]) AS rkey, unnest(@docs::text[]) AS doc) AS x
ON CONFLICT (rtype, rkey) DO UPDATE SET doc = excluded.doc, source = excluded.source, batch_id = excluded.batch_id,
    refreshed_at = excluded.refreshed_at, msg_id = excluded.msg_id, generation = excluded.generation
WHERE excluded.msg_id = 0 OR (ref_master.generation, ref_master.msg_id) <= (excluded.generation, excluded.msg_id);

-- name: DropOtherRefRecords :execrows
-- Of a whole list: what it does not have and no newer message brought goes. Served by the primary key and a hash of the keys.
DELETE FROM ref_master m
WHERE m.rtype = @rtype
  AND NOT EXISTS (SELECT 1 FROM unnest(@keys::text[]) AS k(rkey) WHERE k.rkey = m.rkey)
  AND (sqlc.arg('msg_id')::bigint = 0 OR (m.generation, m.msg_id) <= (sqlc.arg('generation')::integer, sqlc.arg('msg_id')::bigint));

-- name: DropRefRecords :execrows
DELETE FROM ref_master
WHERE rtype = @rtype AND rkey = ANY(@keys::text[])
  AND (sqlc.arg('msg_id')::bigint = 0 OR (generation, msg_id) <= (sqlc.arg('generation')::integer, sqlc.arg('msg_id')::bigint));

-- name: MoveRefSet :exec
-- From the commit on readers see the new batch. A whole list, and the first record of one never seen whole, refresh it.
UPDATE ref_set s SET batch_id = @batch_id, source = @source::text,
    row_count = (SELECT count(*) FROM ref_master m WHERE m.rtype = @rtype),
    refreshed_at = CASE WHEN sqlc.arg('whole')::boolean THEN @now::timestamptz ELSE coalesce(s.refreshed_at, @now) END,
    floor_generation = CASE WHEN sqlc.arg('raise')::boolean THEN @generation ELSE s.floor_generation END,
    floor_msg_id = CASE WHEN sqlc.arg('raise')::boolean THEN @msg_id ELSE s.floor_msg_id END,
    validator = sqlc.narg('validator'), failed_at = NULL, failure = NULL
WHERE s.rtype = @rtype;

-- name: InsertRefBatch :exec
INSERT INTO ref_batch (id, rtype, source, mode, msg_id, generation, records, changed, removed, applied_at)
VALUES (@id, @rtype, @source, @mode, sqlc.narg('msg_id'), @generation, @records, @changed, @removed, @now);

-- name: RefVersions :many
SELECT rtype, batch_id FROM ref_set WHERE rtype = ANY(@rtypes::text[]) ORDER BY rtype;

-- name: RefRecords :many
-- Served by the primary key.
SELECT rtype, rkey, doc FROM ref_master WHERE rtype = ANY(@rtypes::text[]);

-- name: RefSets :many
-- One row a list that anybody has said anything about; a handful.
SELECT rtype, row_count, source, batch_id, refreshed_at, failed_at, failure FROM ref_set ORDER BY rtype;

-- name: RefSet :one
SELECT rtype, row_count, source, batch_id, refreshed_at, failed_at, failure FROM ref_set WHERE rtype = @rtype;

-- name: RefPage :many
-- A page of a list by its keys, from after on. Served by the primary key.
SELECT rkey, doc, source, batch_id, refreshed_at FROM ref_master
WHERE rtype = @rtype AND rkey > @after
ORDER BY rkey
LIMIT @max_rows;

-- name: RefValidator :many
-- What the neighbour's last answer was marked with; only while that answer is what we have.
SELECT validator FROM ref_set WHERE rtype = @rtype AND source = 'ADMINAPI' AND validator IS NOT NULL;

-- name: ConfirmRefSet :exec
-- The neighbour says that what we have of it is still all there is; not what a message has said since it was asked.
UPDATE ref_set SET refreshed_at = CASE WHEN source = 'ADMINAPI' AND validator = @validator::text THEN @now::timestamptz ELSE refreshed_at END,
    failed_at = NULL, failure = NULL
WHERE rtype = @rtype;

-- name: FailRefSet :exec
-- A refresh failed: what we have stays, with its age.
INSERT INTO ref_set (rtype, failed_at, failure) VALUES (@rtype, @now::timestamptz, @failure::text)
ON CONFLICT (rtype) DO UPDATE SET failed_at = excluded.failed_at, failure = excluded.failure;
