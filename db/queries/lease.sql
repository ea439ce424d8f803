-- Fencing and wake-ups (design O2, O3, O4). The clock here is the database's, the only one all pods share.

-- name: EnsureLeases :exec
-- One row a role, made at start by whichever pod comes first.
INSERT INTO pipeline_lease (lane, role, heartbeat_at)
SELECT @lane, unnest(@roles::text[]), clock_timestamp()
ON CONFLICT (lane, role) DO NOTHING;

-- name: TakeLease :execrows
-- A drain begins: it becomes the holder of the epoch it was woken for. Served by the primary key.
UPDATE pipeline_lease SET holder = @holder, heartbeat_at = clock_timestamp(), troubled_at = NULL
WHERE lane = @lane AND role = @role AND epoch = @epoch;

-- name: HoldLease :many
-- PIPELINE_LOCK: first statement of every fenced transaction. Locks the row until commit and beats. A row when it is ours. What
-- follows in the transaction names its rows in arrays and is planned once, whatever their length: for long ones PostgreSQL
-- prefers reading a whole table that it believes small or finished, and a belief may be old (decision 0014).
UPDATE pipeline_lease SET heartbeat_at = clock_timestamp(), turn = turn + 1
WHERE lane = @lane AND role = @role AND epoch = @epoch AND holder = @holder
RETURNING turn, set_config('plan_cache_mode', 'force_generic_plan', true)::text AS plans;

-- name: BeatLease :execrows
-- Shows life between fenced transactions; while one is open its row lock shows it. A holder that cannot reach what the role
-- needs says since when, so that a pod that can may have the role.
UPDATE pipeline_lease SET heartbeat_at = clock_timestamp(),
    troubled_at = CASE WHEN @troubled::boolean THEN coalesce(troubled_at, clock_timestamp()) END
WHERE (lane, role) = (SELECT p.lane, p.role FROM pipeline_lease p
    WHERE p.lane = @lane AND p.role = @role AND p.epoch = @epoch AND p.holder = @holder FOR UPDATE SKIP LOCKED);

-- name: CloseLease :execrows
-- A drain ends: from now on a wake-up must insert a job.
UPDATE pipeline_lease SET holder = '', troubled_at = NULL
WHERE lane = @lane AND role = @role AND epoch = @epoch AND holder = @holder;

-- name: AdvanceLease :one
-- Takeover: only if nothing has moved since the watcher looked and no transaction of the holder is open.
UPDATE pipeline_lease SET epoch = epoch + 1, holder = '', heartbeat_at = clock_timestamp(), troubled_at = NULL
WHERE (lane, role) = (SELECT p.lane, p.role FROM pipeline_lease p
    WHERE p.lane = @lane AND p.role = @role AND p.epoch = @epoch AND p.heartbeat_at = @heartbeat_at FOR UPDATE SKIP LOCKED)
RETURNING epoch;

-- name: RelieveLease :one
-- A pod that can reach what the role needs takes it from a holder that cannot, if that still says so and no transaction of it
-- is open.
UPDATE pipeline_lease SET epoch = epoch + 1, holder = '', heartbeat_at = clock_timestamp(), troubled_at = NULL
WHERE (lane, role) = (SELECT p.lane, p.role FROM pipeline_lease p
    WHERE p.lane = @lane AND p.role = @role AND p.epoch = @epoch AND p.troubled_at IS NOT NULL FOR UPDATE SKIP LOCKED)
RETURNING epoch;

-- name: Leases :many
SELECT role, epoch, holder, heartbeat_at, troubled_at FROM pipeline_lease WHERE lane = @lane AND role = ANY(@roles::text[]) ORDER BY role;

-- name: LockWakeShared :exec
-- An enqueuer orders itself against closing drains (O3). In a fixed order, so that two enqueuers cannot lock crosswise.
SELECT pg_advisory_xact_lock_shared(x.key)
FROM (SELECT hashtextextended('msgexchange/wake/' || @lane::text || '/' || r, 0) AS key FROM unnest(@roles::text[]) AS r ORDER BY 1) AS x;

-- name: LockWake :exec
-- A closing drain waits for every enqueuer under way, then looks once more.
SELECT pg_advisory_xact_lock(hashtextextended('msgexchange/wake/' || @lane::text || '/' || @role::text, 0));

-- name: BlockLeases :exec
-- Whoever writes beside a role of all lanes: no transaction of its workers commits before ours, and the next one sees that we
-- were there: by so many turns that none of its commits lost with a server make up for them. In a fixed order.
UPDATE pipeline_lease SET turn = turn + 1048576
WHERE (lane, role) IN (SELECT p.lane, p.role FROM pipeline_lease p WHERE p.role = @role ORDER BY p.lane FOR UPDATE);
