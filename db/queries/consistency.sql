-- What the sentinel compares (design §10), and what it found. Everything is looked up by the flights of one chunk.

-- name: FlightIDs :many
-- A page of all flights, deleted ones too. Index-only on flight_schd_pkey.
SELECT flid FROM flight_schd WHERE flid > @after_flid ORDER BY flid LIMIT @max_rows;

-- name: NewestSchdEvents :many
-- The newest event on schd of each flight, archived or not. Served by msg_event_flid_idx and msg_event_hst_flid_idx.
SELECT f.flid::bigint AS flid, e.event_id, e.event_type, e.state_version, e.payload
FROM unnest(@flids::bigint[]) AS f(flid)
CROSS JOIN LATERAL (
    SELECT x.event_id, x.event_type, x.state_version, x.payload FROM (
        (SELECT m.event_id, m.event_type, m.state_version, m.payload FROM msg_event m
         WHERE m.flid = f.flid AND m.target = 'KAFKA:schd' ORDER BY m.event_id DESC LIMIT 1)
        UNION ALL
        (SELECT h.event_id, h.event_type, h.state_version, h.payload FROM msg_event_hst h
         WHERE h.flid = f.flid AND h.target = 'KAFKA:schd' ORDER BY h.event_id DESC LIMIT 1)
    ) x ORDER BY x.event_id DESC LIMIT 1
) e;

-- name: NewestChanges :many
-- The version after the last thing that happened to each flight. Walks flight_change_pkey backwards.
SELECT f.flid::bigint AS flid, c.state_version
FROM unnest(@flids::bigint[]) AS f(flid)
CROSS JOIN LATERAL (SELECT x.state_version FROM flight_change x WHERE x.flid = f.flid ORDER BY x.change_id DESC LIMIT 1) c;

-- name: LiveChildren :many
-- Served by flight_schd_maid_idx.
SELECT maid::bigint AS maid, flno FROM flight_schd WHERE maid = ANY(@flids::bigint[]) AND deleted_at IS NULL;

-- name: MessageStates :many
-- How messages ended and how their marks stand, archived or not. Served by the primary keys.
SELECT p.msg_id, p.generation, p.state, p.backfill_next_at, p.backfill_at, p.backfill_abandoned_at
FROM proc_state p WHERE p.msg_id = ANY(@msg_ids::bigint[])
UNION ALL
SELECT h.msg_id, h.generation, h.state, h.backfill_next_at, h.backfill_at, h.backfill_abandoned_at
FROM (SELECT unnest(@msg_ids::bigint[]) AS msg_id, unnest(@generations::integer[]) AS generation) AS x
JOIN proc_state_hst h ON h.generation = x.generation AND h.msg_id = x.msg_id;

-- name: SaveDifferences :many
-- Keeps what was found now; is_new says that it was not known.
INSERT INTO consistency_difference AS d (flid, about, detail, first_seen_at, last_seen_at)
SELECT x.flid, x.about, x.detail, @now, @now FROM jsonb_to_recordset(@rows::jsonb) AS x(flid bigint, about text, detail text)
ON CONFLICT (flid, about) DO UPDATE SET detail = excluded.detail, last_seen_at = excluded.last_seen_at
RETURNING d.flid, d.about, d.detail, (d.xmax = 0)::boolean AS is_new;

-- name: CloseDifferences :many
-- Of the flights just looked at, what was found before and not again.
DELETE FROM consistency_difference d WHERE d.flid = ANY(@flids::bigint[]) AND d.last_seen_at < @now
RETURNING d.flid, d.about;

-- name: FlightsInDoubt :many
-- Flights with an open difference, a page of them.
SELECT DISTINCT flid FROM consistency_difference WHERE flid > @after_flid ORDER BY flid LIMIT @max_rows;

-- name: DifferenceCounts :many
SELECT about, count(*) AS amount FROM consistency_difference GROUP BY about;

-- name: OpsDifferences :many
-- Newest first; walks the primary key backwards.
SELECT id, flid, about, detail, first_seen_at, last_seen_at FROM consistency_difference WHERE id < @before_id ORDER BY id DESC LIMIT @max_rows;

-- name: MendSpans :one
-- Looks whether each event of a page that waits or is dead lies in a span of its own state, and gives those that do not one: they would
-- never be sent. That takes somebody who kept triggers from running. last_id is where the page ended, 0 when there was none.
-- Served by msg_event_pkey and event_span_pkey.
WITH page AS MATERIALIZED (
    SELECT e.event_id, e.target, e.state FROM msg_event e WHERE e.event_id > @after ORDER BY e.event_id LIMIT @max_rows
), mended AS (
    INSERT INTO event_span (target, state, first_id, last_id, amount)
    SELECT p.target, p.state, min(p.event_id), max(p.event_id), count(*)
    FROM page p
    WHERE p.state <> 'SENT'
      AND NOT EXISTS (SELECT 1 FROM event_span s
                      WHERE s.target = p.target AND s.state = p.state AND s.first_id BETWEEN p.event_id - 1023 AND p.event_id AND s.last_id >= p.event_id)
    GROUP BY p.target, p.state, p.event_id >> 10
    RETURNING amount
)
SELECT coalesce((SELECT max(p.event_id) FROM page p), 0)::bigint AS last_id, (SELECT coalesce(sum(m.amount), 0) FROM mended m)::bigint AS mended;
