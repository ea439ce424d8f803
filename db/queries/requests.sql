-- The life of requests to the airport's database (design §9). At most one of a kind is open: req_track_kind_open_key.

-- name: LockRequestKind :exec
-- Orders those who register a request of one kind, until their commit.
SELECT pg_advisory_xact_lock(hashtextextended('msgexchange/request/' || @kind::text, 0));

-- name: SupersedeRequest :exec
-- Served by req_track_kind_open_key.
UPDATE req_track SET state = 'EXPIRED', expired_at = @now::timestamptz, reason = @reason::text
WHERE kind = @kind AND state IN ('REGISTERED', 'SENT', 'WAITING');

-- name: NextRequestSeqn :one
SELECT nextval('req_track_seqn_seq')::bigint AS seqn;

-- name: InsertRequest :one
INSERT INTO req_track (kind, seqn, body, window_start, window_end, registered_at, actor)
VALUES (@kind, @seqn, @body::text, sqlc.narg('window_start'), sqlc.narg('window_end'), @now, @actor)
RETURNING id;

-- name: OpenRequests :many
-- All open requests, at most one a kind. Served by req_track_kind_open_key.
SELECT id, kind, state, seqn, body, registered_at, sending_at, sent_at, noted_at, taken_at, coutmsgs_id
FROM req_track WHERE state IN ('REGISTERED', 'SENT', 'WAITING') ORDER BY id;

-- name: RequestPending :one
SELECT EXISTS (SELECT 1 FROM req_track WHERE state IN ('REGISTERED', 'SENT', 'WAITING')) AS pending;

-- name: RequestState :one
SELECT state, coutmsgs_id FROM req_track WHERE id = @id;

-- name: BeginRequest :execrows
-- On record before it is put into the mailbox: an answer may be there before we know that it was put.
UPDATE req_track SET sending_at = @sending_at::timestamptz WHERE id = @id AND state = 'REGISTERED';

-- name: SentRequest :exec
-- It is in the mailbox. One that ended meanwhile keeps its state and learns its id all the same.
UPDATE req_track SET coutmsgs_id = @coutmsgs_id::bigint, sent_at = coalesce(sent_at, @sent_at::timestamptz), noted_at = @now::timestamptz,
    state = CASE WHEN state = 'REGISTERED' THEN 'SENT' ELSE state END
WHERE id = @id AND coutmsgs_id IS NULL;

-- name: TakenRequests :exec
-- The transport has taken them. Rows are locked in the order of their ids, here as wherever several are: the head holds them
-- while it applies answers.
WITH held AS (SELECT id FROM req_track WHERE id = ANY(@ids::bigint[]) AND state = 'SENT' ORDER BY id FOR UPDATE)
UPDATE req_track r SET state = 'WAITING', taken_at = x.taken_at
FROM held, (SELECT unnest(@ids::bigint[]) AS id, unnest(@taken_at::timestamptz[]) AS taken_at) AS x
WHERE r.id = held.id AND x.id = held.id;

-- name: ExpireRequests :exec
WITH held AS (SELECT id FROM req_track WHERE id = ANY(@ids::bigint[]) AND state = ANY(@states::text[]) ORDER BY id FOR UPDATE)
UPDATE req_track r SET state = 'EXPIRED', expired_at = @now::timestamptz, reason = @reason::text
FROM held WHERE r.id = held.id;

-- name: NewestRequests :many
-- The newest of each kind, locked: what is decided about them holds until the commit. Served by req_track_kind_id_idx.
SELECT r.id, r.kind, r.state, r.seqn, r.registered_at, r.sending_at, r.sent_at
FROM unnest(@kinds::text[]) AS k(kind)
CROSS JOIN LATERAL (SELECT n.id FROM req_track n WHERE n.kind = k.kind ORDER BY n.id DESC LIMIT @newest) AS n
JOIN req_track r ON r.id = n.id
ORDER BY r.id
FOR UPDATE OF r;

-- name: AnswerRequests :execrows
-- DONE, with what the answers brought (one transaction). Only requests that are open.
UPDATE req_track r SET state = 'DONE', done_at = @now::timestamptz, resp_msg_id = x.msg_id, match = x.match, sent_at = coalesce(r.sent_at, r.sending_at)
FROM jsonb_to_recordset(@rows::jsonb) AS x(id bigint, msg_id bigint, match text)
WHERE r.id = x.id AND r.state IN ('REGISTERED', 'SENT', 'WAITING');

-- name: ShadowAnswers :exec
-- A shadow asks nothing: it keeps a trace of the answers that it saw others get.
INSERT INTO req_track (kind, state, registered_at, done_at, resp_msg_id, match, actor)
SELECT x.kind, 'DONE', @now::timestamptz, @now::timestamptz, x.msg_id, x.match, 'shadow'
FROM jsonb_to_recordset(@rows::jsonb) AS x(kind text, msg_id bigint, match text);

-- name: OpenRequestCounts :many
-- For the gauge. Served by req_track_kind_open_key.
SELECT kind, count(*) AS open FROM req_track WHERE state IN ('REGISTERED', 'SENT', 'WAITING') GROUP BY kind;

-- name: ExpiredRequests :one
-- For the counter: those still here and those deleted since. Served by req_track_expired_idx.
SELECT (count(*) + coalesce((SELECT t.amount FROM retired_rows t WHERE t.name = 'requests-expired'), 0))::bigint AS expired
FROM req_track WHERE state = 'EXPIRED';

-- name: OpsRequests :many
-- Newest first, as the other lists (ops.sql). Served by req_track_registered_at_idx, req_track_state_idx or
-- req_track_kind_id_idx.
SELECT id, kind, state, seqn, coutmsgs_id, window_start, window_end, registered_at, sent_at, taken_at, done_at, expired_at,
       resp_msg_id, match, reason, actor
FROM req_track
WHERE (sqlc.narg('before_at')::timestamptz IS NULL OR (registered_at, id) < (sqlc.narg('before_at')::timestamptz, @before_id::bigint))
  AND (sqlc.narg('kind')::text IS NULL OR kind = sqlc.narg('kind'))
  AND (sqlc.narg('state')::text IS NULL OR state = sqlc.narg('state'))
  AND (sqlc.narg('from_time')::timestamptz IS NULL OR registered_at >= sqlc.narg('from_time'))
  AND (sqlc.narg('to_time')::timestamptz IS NULL OR registered_at < sqlc.narg('to_time'))
ORDER BY registered_at DESC, id DESC
LIMIT @max_rows;
