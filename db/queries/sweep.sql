-- Flights leave the live set for flight_history (design §10; decision 0016).

-- name: SweepCandidates :many
-- Flights of operation days that are over, deleted ones too, a page of them after a place. Served by flight_schd_operation_day_idx.
SELECT flid, operation_day, sodt FROM flight_schd
WHERE operation_day < @before_day::date AND (operation_day, sodt, flid) > (@after_day::date, @after_sodt::timestamptz, @after_flid::bigint)
ORDER BY operation_day, sodt, flid
LIMIT @max_rows;

-- name: MessagesWait :one
-- Served by proc_state_unfinished_idx.
SELECT EXISTS (SELECT 1 FROM proc_state WHERE state IN ('PENDING', 'FAILED')) AS waiting;

-- name: MoveToHistory :execrows
-- Writes flights into the history, with what messages did to them, which leaves its own table. Only under PIPELINE_LOCK.
WITH gone AS (
    DELETE FROM flight_change c WHERE c.flid = ANY(@flids::bigint[])
    RETURNING c.flid, c.change_id, c.msg_id, c.generation, c.kind, c.change, c.state_version, c.dttm, c.before, c.fields, c.changed_at
), told AS (
    SELECT gone.flid, json_agg(json_build_object('change_id', gone.change_id, 'msg_id', gone.msg_id, 'generation', gone.generation, 'kind', gone.kind,
               'change', gone.change, 'state_version', gone.state_version, 'dttm', gone.dttm, 'before', gone.before, 'fields', gone.fields,
               'changed_at', gone.changed_at) ORDER BY gone.change_id) AS changes
    FROM gone GROUP BY gone.flid
)
INSERT INTO flight_history (flid, operation_day, state_version, rule, doc, provenance, swept_at, last_msg_id, last_generation,
                            deleted_at, deleted_msg_id, deleted_generation, changes)
SELECT x.flid, x.operation_day, x.state_version, x.rule, x.doc, x.provenance, @now, x.last_msg_id, x.last_generation,
       x.deleted_at, x.deleted_msg_id, x.deleted_generation, coalesce(told.changes, '[]')
FROM json_to_recordset(@rows::json) AS x(
    flid bigint, operation_day date, state_version bigint, rule text, doc jsonb, provenance jsonb, last_msg_id bigint, last_generation integer,
    deleted_at timestamptz, deleted_msg_id bigint, deleted_generation integer)
LEFT JOIN told ON told.flid = x.flid;

-- name: DeleteFlights :execrows
-- With all their lists, and what the sentinel had to say about them. Served by the primary keys.
WITH settled AS (DELETE FROM consistency_difference d WHERE d.flid = ANY(@flids::bigint[]))
DELETE FROM flight_schd f WHERE f.flid = ANY(@flids::bigint[]);

-- name: SweptFlights :many
-- Of the flights named, those that were swept, as they last were. Served by flight_history_pkey.
SELECT DISTINCT ON (flid) flid, operation_day, state_version, last_msg_id, last_generation, deleted_at, deleted_msg_id, deleted_generation, rule, swept_at
FROM flight_history WHERE flid = ANY(@flids::bigint[])
ORDER BY flid, state_version DESC;

-- name: SweptLives :many
-- All that is kept of one flight's lives before it was swept, the last first. Served by flight_history_pkey.
SELECT flid, operation_day, state_version, rule, doc, provenance, swept_at, last_msg_id, last_generation, deleted_at, deleted_msg_id,
       deleted_generation, changes
FROM flight_history WHERE flid = @flid
ORDER BY state_version DESC
LIMIT @max_rows;
