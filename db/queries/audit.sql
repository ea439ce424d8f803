-- Who did what, why and with what result (contract §8.25).

-- name: InsertAudit :exec
INSERT INTO ops_audit (at, actor, peer, action, reason, scope, dry_run, result)
VALUES (@at, @actor, @peer, @action, @reason, @scope, @dry_run, @result);

-- name: OpsAudit :many
-- Newest first; walks the primary key backwards, the page is cut by max_rows.
SELECT id, at, actor, peer, action, reason, scope, dry_run, result
FROM ops_audit
WHERE id < @before_id
  AND (sqlc.narg('actor')::text IS NULL OR actor = sqlc.narg('actor'))
  AND (sqlc.narg('action')::text IS NULL OR action = sqlc.narg('action'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR at >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR at < sqlc.narg('to_time'))
ORDER BY id DESC
LIMIT @max_rows;
