-- What each message did to each flight (design §6; contract §4).

-- name: InsertFlightChanges :exec
-- In the order given: their ids ascend in it. An empty change is one nobody could see.
INSERT INTO flight_change (flid, msg_id, generation, kind, change, state_version, dttm, before, fields, changed_at)
SELECT x.flid, x.msg_id, x.generation, x.kind, nullif(x.change, ''), x.state_version, x.dttm, x.before::json, x.fields::json, @now
FROM (SELECT unnest(@flids::bigint[]) AS flid, unnest(@msg_ids::bigint[]) AS msg_id, unnest(@generations::integer[]) AS generation,
             unnest(@kinds::text[]) AS kind, unnest(@changes::text[]) AS change, unnest(@state_versions::bigint[]) AS state_version,
             unnest(@dttms::timestamptz[]) AS dttm, unnest(@befores::text[]) AS before, unnest(@fields::text[]) AS fields) x;

-- name: FlightHistory :many
-- What was done to one flight, the last first. Walks the primary key backwards.
SELECT flid, change_id, msg_id, generation, kind, change, state_version, dttm, before, fields, changed_at
FROM flight_change
WHERE flid = @flid AND change_id < @before_id
ORDER BY change_id DESC
LIMIT @max_rows;

-- name: FlightChangesOf :many
-- What one message did, in the order in which it did it, a page of it. Served by flight_change_msg_id_idx.
SELECT flid, change_id, msg_id, generation, kind, change, state_version, dttm, before, fields, changed_at
FROM flight_change
WHERE msg_id = @msg_id AND generation = @generation AND change_id > @after_id
ORDER BY change_id
LIMIT @max_rows;

-- name: FlightKnown :one
-- Whether there is such a flight, or one in the history.
SELECT (EXISTS (SELECT 1 FROM flight_schd f WHERE f.flid = @flid) OR EXISTS (SELECT 1 FROM flight_history h WHERE h.flid = @flid))::boolean AS known;
