-- Flights and their lists (design §2, §6).

-- name: FlightClosure :many
-- The flights named, their masters and their children, all the way. Served by flight_schd_pkey and flight_schd_maid_idx.
WITH RECURSIVE closure AS (
    SELECT unnest(@flids::bigint[]) AS flid
    UNION
    SELECT n.flid FROM closure c CROSS JOIN LATERAL (
        SELECT m.maid AS flid FROM flight_schd m WHERE m.flid = c.flid AND m.maid IS NOT NULL
        UNION ALL
        SELECT k.flid FROM flight_schd k WHERE k.maid = c.flid
    ) n
)
SELECT closure.flid::bigint AS flid FROM closure;

-- name: FlightsByID :many
-- Whole flights, deleted ones too, those that exist, in no order. Served by the primary keys of all tables.
SELECT f.flid, f.operation_day, f.state_version, f.last_msg_id, f.last_generation, f.created_msg_id, f.created_generation,
       f.deleted_msg_id, f.deleted_generation, f.deleted_at, f.updated_at, f.published, f.mafl, f.abdg,
       f.scalars, f.stand_ops, f.ext, f.provenance, l.lists::json AS lists
FROM flight_schd f
LEFT JOIN (SELECT v.flid, v.lists FROM flight_lists v WHERE v.flid = ANY(@flids::bigint[])) l ON l.flid = f.flid
WHERE f.flid = ANY(@flids::bigint[]);

-- name: FindFlights :many
-- Live flights by (sodt, flid), a page of them after a place. Served by flight_schd_live_idx, or by the index of a filter.
SELECT f.flid, f.sodt
FROM flight_schd f
WHERE f.deleted_at IS NULL
  AND (NOT @masters::boolean OR f.maid IS NULL)
  AND (sqlc.narg('operation_day')::text IS NULL OR f.operation_day = sqlc.narg('operation_day')::text::date)
  AND (sqlc.narg('flno')::text IS NULL OR f.flno = sqlc.narg('flno'))
  AND (sqlc.narg('mvin')::text IS NULL OR f.mvin = sqlc.narg('mvin'))
  AND (sqlc.narg('stand')::text IS NULL OR f.stnd = sqlc.narg('stand')
       OR EXISTS (SELECT 1 FROM flight_psdt p WHERE p.flid = f.flid AND p.psst = sqlc.narg('stand')))
  AND (sqlc.narg('gate')::text IS NULL
       OR EXISTS (SELECT 1 FROM flight_gtdt g WHERE g.flid = f.flid AND g.gate = sqlc.narg('gate')))
  AND (f.sodt, f.flid) > (@after_sodt::timestamptz, @after_flid::bigint)
ORDER BY f.sodt, f.flid
LIMIT @max_rows;

-- name: ConsistencyPoint :many
-- The newest message below which everything is finished (contract §8.3). Served by proc_state_unfinished_idx and the two
-- primary keys, whose newest rows it looks at.
WITH head AS (
    SELECT p.generation, p.msg_id FROM proc_state p WHERE p.state IN ('PENDING', 'FAILED') ORDER BY p.msg_id LIMIT 1
)
SELECT x.generation, x.msg_id FROM (
    (SELECT p.generation, p.msg_id FROM proc_state p
     WHERE p.msg_id < coalesce((SELECT h.msg_id FROM head h), 9223372036854775807)
     ORDER BY p.msg_id DESC LIMIT 1)
    UNION ALL
    (SELECT a.generation, a.msg_id FROM proc_state_hst a
     WHERE NOT EXISTS (SELECT 1 FROM head) OR (a.generation, a.msg_id) < (SELECT h.generation, h.msg_id FROM head h)
     ORDER BY a.generation DESC, a.msg_id DESC LIMIT 1)
) x
ORDER BY x.generation DESC, x.msg_id DESC
LIMIT 1;

-- name: UpsertFlights :exec
-- The rows of flights as they are now. Columns with an index hardly ever differ, so the updates stay HOT. 0, the empty text and
-- the year 1 are NULL; mafls are arrays as text.
INSERT INTO flight_schd AS f (
    flid, operation_day, state_version, last_msg_id, last_generation, created_msg_id, created_generation,
    deleted_msg_id, deleted_generation, deleted_at, created_at, updated_at, published, flno, mvin, sodt, maid, stnd, mafl, abdg,
    scalars, stand_ops, ext, provenance)
SELECT x.flid, x.operation_day::date, x.state_version, x.last_msg_id, x.last_generation, x.created_msg_id, x.created_generation,
       x.deleted_msg_id, x.deleted_generation, nullif(x.deleted_at, timestamptz '0001-01-01 00:00:00+00'), x.updated_at, x.updated_at, x.published,
       x.flno, x.mvin, x.sodt, nullif(x.maid, 0), nullif(x.stnd, ''), x.mafl::text[], nullif(x.abdg, ''),
       x.scalars::json, x.stand_ops::json, x.ext::json, x.provenance::json
FROM (SELECT unnest(@flids::bigint[]) AS flid, unnest(@operation_days::text[]) AS operation_day, unnest(@state_versions::bigint[]) AS state_version,
             unnest(@last_msg_ids::bigint[]) AS last_msg_id, unnest(@last_generations::integer[]) AS last_generation,
             unnest(@created_msg_ids::bigint[]) AS created_msg_id, unnest(@created_generations::integer[]) AS created_generation,
             unnest(@deleted_msg_ids::bigint[]) AS deleted_msg_id, unnest(@deleted_generations::integer[]) AS deleted_generation,
             unnest(@deleted_ats::timestamptz[]) AS deleted_at, unnest(@updated_ats::timestamptz[]) AS updated_at,
             unnest(@published::boolean[]) AS published, unnest(@flnos::text[]) AS flno, unnest(@mvins::text[]) AS mvin,
             unnest(@sodts::timestamptz[]) AS sodt, unnest(@maids::bigint[]) AS maid, unnest(@stnds::text[]) AS stnd,
             unnest(@mafls::text[]) AS mafl, unnest(@abdgs::text[]) AS abdg, unnest(@scalars::text[]) AS scalars,
             unnest(@stand_ops::text[]) AS stand_ops, unnest(@exts::text[]) AS ext, unnest(@provenances::text[]) AS provenance) x
ON CONFLICT (flid) DO UPDATE SET
    operation_day = excluded.operation_day, state_version = excluded.state_version,
    last_msg_id = excluded.last_msg_id, last_generation = excluded.last_generation,
    created_msg_id = excluded.created_msg_id, created_generation = excluded.created_generation,
    deleted_msg_id = excluded.deleted_msg_id, deleted_generation = excluded.deleted_generation,
    deleted_at = excluded.deleted_at, updated_at = excluded.updated_at, published = excluded.published,
    flno = excluded.flno, mvin = excluded.mvin, sodt = excluded.sodt, maid = excluded.maid, stnd = excluded.stnd,
    mafl = excluded.mafl, abdg = excluded.abdg, scalars = excluded.scalars, stand_ops = excluded.stand_ops,
    ext = excluded.ext, provenance = excluded.provenance;

-- name: DeleteEntries :exec
-- The entries of the lists that are about to be written anew: for each list the flights whose list changed.
WITH psdt AS (DELETE FROM flight_psdt d WHERE d.flid = ANY(@psdt::bigint[])),
     gtdt AS (DELETE FROM flight_gtdt d WHERE d.flid = ANY(@gtdt::bigint[])),
     ckdt AS (DELETE FROM flight_ckdt d WHERE d.flid = ANY(@ckdt::bigint[])),
     cldt AS (DELETE FROM flight_cldt d WHERE d.flid = ANY(@cldt::bigint[])),
     chdt AS (DELETE FROM flight_chdt d WHERE d.flid = ANY(@chdt::bigint[])),
     abtm AS (DELETE FROM flight_abtm d WHERE d.flid = ANY(@abtm::bigint[])),
     chot AS (DELETE FROM flight_chot d WHERE d.flid = ANY(@chot::bigint[])),
     srvt AS (DELETE FROM flight_srvt d WHERE d.flid = ANY(@srvt::bigint[])),
     dely AS (DELETE FROM flight_dely d WHERE d.flid = ANY(@dely::bigint[])),
     vipf AS (DELETE FROM flight_vipf d WHERE d.flid = ANY(@vipf::bigint[])),
     rout AS (DELETE FROM flight_route_point d WHERE d.kind = 'ROUT' AND d.flid = ANY(@rout::bigint[]))
DELETE FROM flight_route_point d WHERE d.kind = 'ERUT' AND d.flid = ANY(@erut::bigint[]);

-- name: InsertEntries :exec
-- The entries of changed lists.
WITH psdt AS (
    INSERT INTO flight_psdt (flid, psno, psst, stst, stet)
    SELECT x.flid, x.psno, x.psst, x.stst, x.stet
    FROM json_to_recordset(@psdt::json) AS x(flid bigint, psno smallint, psst text, stst timestamptz, stet timestamptz)
), gtdt AS (
    INSERT INTO flight_gtdt (flid, gtno, gate, pgot, pgct, gotm, gctm, gtyp)
    SELECT x.flid, x.gtno, x.gate, x.pgot, x.pgct, x.gotm, x.gctm, x.gtyp
    FROM json_to_recordset(@gtdt::json) AS x(flid bigint, gtno smallint, gate text, pgot timestamptz, pgct timestamptz, gotm timestamptz, gctm timestamptz, gtyp text)
), ckdt AS (
    INSERT INTO flight_ckdt (flid, ckno, chkc, ccls, pcot, pcct, cotm, cctm, ctyp)
    SELECT x.flid, x.ckno, x.chkc, x.ccls, x.pcot, x.pcct, x.cotm, x.cctm, x.ctyp
    FROM json_to_recordset(@ckdt::json) AS x(flid bigint, ckno smallint, chkc text, ccls text, pcot timestamptz, pcct timestamptz, cotm timestamptz, cctm timestamptz, ctyp text)
), cldt AS (
    INSERT INTO flight_cldt (flid, clno, belt, bcls, pcot, pcct, fbag, lbag, btyp)
    SELECT x.flid, x.clno, x.belt, x.bcls, x.pcot, x.pcct, x.fbag, x.lbag, x.btyp
    FROM json_to_recordset(@cldt::json) AS x(flid bigint, clno smallint, belt text, bcls text, pcot timestamptz, pcct timestamptz, fbag timestamptz, lbag timestamptz, btyp text)
), chdt AS (
    INSERT INTO flight_chdt (flid, chno, chut, ccls, pcbt, pcet, cbtm, cetm, ctyp)
    SELECT x.flid, x.chno, x.chut, x.ccls, x.pcbt, x.pcet, x.cbtm, x.cetm, x.ctyp
    FROM json_to_recordset(@chdt::json) AS x(flid bigint, chno smallint, chut text, ccls text, pcbt timestamptz, pcet timestamptz, cbtm timestamptz, cetm timestamptz, ctyp text)
), abtm AS (
    INSERT INTO flight_abtm (flid, asno, abdg, abop, aotm)
    SELECT x.flid, x.asno, x.abdg, x.abop, x.aotm
    FROM json_to_recordset(@abtm::json) AS x(flid bigint, asno smallint, abdg text, abop text, aotm timestamptz)
), chot AS (
    INSERT INTO flight_chot (flid, csno, chtm, chid, chst)
    SELECT x.flid, x.csno, x.chtm, x.chid, x.chst
    FROM json_to_recordset(@chot::json) AS x(flid bigint, csno smallint, chtm timestamptz, chid text, chst text)
), srvt AS (
    INSERT INTO flight_srvt (flid, srtc, srqt, srst, sret, srpr, sanr, sarr)
    SELECT x.flid, x.srtc, x.srqt, x.srst, x.sret, x.srpr, x.sanr, x.sarr
    FROM json_to_recordset(@srvt::json) AS x(flid bigint, srtc text, srqt smallint, srst timestamptz, sret timestamptz, srpr bigint, sanr text, sarr text)
), dely AS (
    INSERT INTO flight_dely (flid, code, strt, dura_minutes, reason)
    SELECT x.flid, x.code, x.strt, x."duraMinutes", x.text
    FROM json_to_recordset(@dely::json) AS x(flid bigint, code text, strt timestamptz, "duraMinutes" integer, text text)
), vipf AS (
    INSERT INTO flight_vipf (flid, vpcd, vfes, vipt)
    SELECT x.flid, x.vpcd, x.vfes, x.vipt
    FROM json_to_recordset(@vipf::json) AS x(flid bigint, vpcd text, vfes bigint, vipt json)
), rout AS (
    INSERT INTO flight_route_point (flid, kind, rtno, apcd, scat, scdt)
    SELECT x.flid, 'ROUT', x.rtno, x.apcd, x.scat, x.scdt
    FROM json_to_recordset(@rout::json) AS x(flid bigint, rtno smallint, apcd text, scat timestamptz, scdt timestamptz)
)
INSERT INTO flight_route_point (flid, kind, rtno, apcd, scat, scdt)
SELECT x.flid, 'ERUT', x.rtno, x.apcd, x.scat, x.scdt
FROM json_to_recordset(@erut::json) AS x(flid bigint, rtno smallint, apcd text, scat timestamptz, scdt timestamptz);
