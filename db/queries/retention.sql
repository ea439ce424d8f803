-- What nobody needs any more (decision 0016). Each statement deletes the oldest rows of a table, at most max_rows of them.

-- name: DropArchivedMessages :execrows
-- By received time, as they were archived. Served by proc_state_hst_received_idx.
DELETE FROM proc_state_hst h USING (
    SELECT o.generation, o.msg_id FROM proc_state_hst o
    WHERE coalesce(o.received_at, o.created_at) < @before::timestamptz
    ORDER BY coalesce(o.received_at, o.created_at), o.generation, o.msg_id
    LIMIT @max_rows
) AS due
WHERE h.generation = due.generation AND h.msg_id = due.msg_id;

-- name: DropArchivedEvents :execrows
-- Served by msg_event_hst_created_at_idx.
DELETE FROM msg_event_hst h USING (
    SELECT o.generation, o.event_id FROM msg_event_hst o WHERE o.created_at < @before ORDER BY o.created_at, o.event_id LIMIT @max_rows
) AS due
WHERE h.generation = due.generation AND h.event_id = due.event_id;

-- name: DropSweptFlights :execrows
-- Served by flight_history_swept_at_idx.
DELETE FROM flight_history h USING (
    SELECT o.flid, o.operation_day, o.state_version FROM flight_history o WHERE o.swept_at < @before ORDER BY o.swept_at LIMIT @max_rows
) AS due
WHERE h.flid = due.flid AND h.operation_day = due.operation_day AND h.state_version = due.state_version;

-- name: DropSnapLog :execrows
-- Served by schd_snap_log_recv_at_idx.
DELETE FROM schd_snap_log s USING (SELECT o.id FROM schd_snap_log o WHERE o.recv_at < @before ORDER BY o.recv_at LIMIT @max_rows) AS due
WHERE s.id = due.id;

-- name: DropAudit :execrows
-- Served by ops_audit_at_idx.
DELETE FROM ops_audit a USING (SELECT o.id FROM ops_audit o WHERE o.at < @before ORDER BY o.at LIMIT @max_rows) AS due
WHERE a.id = due.id;

-- name: DropRequests :one
-- Requests that ended; the expired ones go on counting (msgx_requests_expired_total). Served by req_track_registered_at_idx.
WITH due AS MATERIALIZED (
    SELECT o.id FROM req_track o WHERE o.registered_at < @before AND o.state IN ('DONE', 'EXPIRED') ORDER BY o.registered_at, o.id LIMIT @max_rows
), gone AS (
    DELETE FROM req_track r USING due WHERE r.id = due.id RETURNING r.state
), counted AS (
    INSERT INTO retired_rows AS t (name, amount)
    SELECT 'requests-expired', count(*) FROM gone WHERE gone.state = 'EXPIRED' HAVING count(*) > 0
    ON CONFLICT (name) DO UPDATE SET amount = t.amount + excluded.amount
)
SELECT count(*) FROM gone;

-- name: DropRefBatches :execrows
-- The record of lists taken over, but of those whose rows readers see. Served by ref_batch_applied_at_idx.
DELETE FROM ref_batch b USING (
    SELECT o.id FROM ref_batch o
    WHERE o.applied_at < @before
      AND NOT EXISTS (SELECT 1 FROM ref_set s WHERE s.batch_id = o.id)
      AND NOT EXISTS (SELECT 1 FROM ref_master m WHERE m.rtype = o.rtype AND m.batch_id = o.id)
    ORDER BY o.applied_at, o.id LIMIT @max_rows
) AS due
WHERE b.id = due.id;
