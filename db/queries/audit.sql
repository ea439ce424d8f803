-- Who did what, why and with what result (contract §8.25).

-- name: InsertAudit :exec
INSERT INTO ops_audit (at, actor, peer, action, reason, scope, dry_run, result)
VALUES (@at, @actor, @peer, @action, @reason, @scope, @dry_run, @result);

-- name: OpsAudit :many
-- Newest first, as the other lists (ops.sql). Served by ops_audit_at_idx, ops_audit_actor_idx or ops_audit_action_idx.
SELECT id, at, actor, peer, action, reason, scope, dry_run, result
FROM ops_audit
WHERE (sqlc.narg('before_at')::timestamptz IS NULL OR (at, id) < (sqlc.narg('before_at')::timestamptz, @before_id::bigint))
  AND (sqlc.narg('actor')::text IS NULL OR actor = sqlc.narg('actor'))
  AND (sqlc.narg('action')::text IS NULL OR action = sqlc.narg('action'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR at >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR at < sqlc.narg('to_time'))
ORDER BY at DESC, id DESC
LIMIT @max_rows;
