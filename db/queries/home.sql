-- Which mailbox and which mode a lane belongs to (decision 0012). All served by the primary key of inbox_cursor.

-- name: OpenLane :exec
-- The first process makes the row. No arbiter is named: with ON CONFLICT (lane) the loser of two that start in the same moment can
-- meet inbox_cursor_one_lane before the primary key, and would be told that it is another lane's.
INSERT INTO inbox_cursor (lane, updated_at) VALUES (@lane, @now) ON CONFLICT DO NOTHING;

-- name: ClaimMode :one
-- The first process of a lane settles the mode; every later one is told. No row: the database is another lane's.
UPDATE inbox_cursor SET mode = coalesce(mode, @mode) WHERE lane = @lane RETURNING mode;

-- name: ClaimTopics :one
-- The first process that names topics settles them, or one that says what they were called before; every other one is told.
UPDATE inbox_cursor SET topics = CASE WHEN coalesce(topics, @renamed_from::text) = @renamed_from::text THEN @topics ELSE topics END
WHERE lane = @lane
RETURNING topics;

-- name: Lanes :many
-- One (decision 0020), or none before the first start.
SELECT lane FROM inbox_cursor ORDER BY lane;

-- name: LaneHome :one
SELECT mailbox, mode, topics FROM inbox_cursor WHERE lane = @lane;

-- name: SettleMailbox :execrows
-- Only over what was read before: of two processes that see different mailboxes one finds out.
UPDATE inbox_cursor SET mailbox = @mailbox, updated_at = @now
WHERE lane = @lane AND mailbox IS NOT DISTINCT FROM sqlc.narg(before);

-- name: NewestReceived :many
-- The newest messages of the lane's ids and when the mailbox says they came. Served by the primary key of proc_state.
SELECT p.msg_id, p.received_at FROM inbox_cursor c
JOIN proc_state p ON p.generation = c.generation AND p.msg_id <= c.committed_up_to
WHERE c.lane = @lane AND p.received_at IS NOT NULL
ORDER BY p.msg_id DESC LIMIT @max_rows;
