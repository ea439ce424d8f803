-- Flight state: the authority (design §2, §6). Times are moments; the airport's zone is applied when they are shown.
-- +goose Up

-- scalars: wire name in lower case -> value, as in the flight JSON (contract §5); groups nested (fdiv, port).
-- provenance: field -> the message that set it; "gen:id" once ids have started again, a bare number before (contract §8.10).
-- stand_ops: psht and tipt, the push-back and tractor values by stand, shown while PSDT has the stand (dictionary 7, PATCH).
-- These and ext are json, not jsonb: they are read and written whole, and ext must come back byte for byte.
-- created_* and deleted_* name the message that did it; maid is empty for a flight that stands for itself.
CREATE TABLE flight_schd (
    flid           bigint      NOT NULL,
    operation_day  date        NOT NULL,
    state_version  bigint      NOT NULL,
    last_msg_id    bigint      NOT NULL,
    last_generation integer    NOT NULL DEFAULT 0,
    flno           text        NOT NULL,
    mvin           text        NOT NULL,
    sodt           timestamptz NOT NULL,
    maid           bigint,
    stnd           text,
    mafl           text[]      NOT NULL DEFAULT '{}',
    abdg           text,
    scalars        json        NOT NULL DEFAULT '{}',
    stand_ops      json        NOT NULL DEFAULT '{}',
    ext            json        NOT NULL DEFAULT '{}',
    provenance     json        NOT NULL DEFAULT '{}',
    published      boolean     NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL,
    created_msg_id bigint      NOT NULL DEFAULT 0,
    created_generation integer NOT NULL DEFAULT 0,
    updated_at     timestamptz NOT NULL,
    deleted_at     timestamptz,
    deleted_msg_id bigint      NOT NULL DEFAULT 0,
    deleted_generation integer NOT NULL DEFAULT 0,
    CONSTRAINT flight_schd_pkey PRIMARY KEY (flid),
    CONSTRAINT flight_schd_state_version_check CHECK (state_version > 0)
) WITH (fillfactor = 50);
-- Only columns that hardly ever change are indexed, so that updates stay HOT.
CREATE INDEX flight_schd_live_idx ON flight_schd (sodt, flid) WHERE deleted_at IS NULL;
CREATE INDEX flight_schd_operation_day_idx ON flight_schd (operation_day, sodt, flid);
CREATE INDEX flight_schd_maid_idx ON flight_schd (maid) WHERE maid IS NOT NULL;
CREATE INDEX flight_schd_flno_idx ON flight_schd (flno);

-- The eight detail tables, one row an entry, keyed by the wire's entry number (dictionary 6).
CREATE TABLE flight_psdt (
    flid bigint NOT NULL, psno smallint NOT NULL, psst text NOT NULL, stst timestamptz, stet timestamptz,
    CONSTRAINT flight_psdt_pkey PRIMARY KEY (flid, psno),
    CONSTRAINT flight_psdt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE INDEX flight_psdt_psst_idx ON flight_psdt (psst);
CREATE TABLE flight_gtdt (
    flid bigint NOT NULL, gtno smallint NOT NULL, gate text NOT NULL, pgot timestamptz, pgct timestamptz, gotm timestamptz, gctm timestamptz, gtyp text,
    CONSTRAINT flight_gtdt_pkey PRIMARY KEY (flid, gtno),
    CONSTRAINT flight_gtdt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE INDEX flight_gtdt_gate_idx ON flight_gtdt (gate);
CREATE TABLE flight_ckdt (
    flid bigint NOT NULL, ckno smallint NOT NULL, chkc text NOT NULL, ccls text, pcot timestamptz, pcct timestamptz, cotm timestamptz, cctm timestamptz, ctyp text,
    CONSTRAINT flight_ckdt_pkey PRIMARY KEY (flid, ckno),
    CONSTRAINT flight_ckdt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_cldt (
    flid bigint NOT NULL, clno smallint NOT NULL, belt text NOT NULL, bcls text, pcot timestamptz, pcct timestamptz, fbag timestamptz, lbag timestamptz, btyp text,
    CONSTRAINT flight_cldt_pkey PRIMARY KEY (flid, clno),
    CONSTRAINT flight_cldt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_chdt (
    flid bigint NOT NULL, chno smallint NOT NULL, chut text NOT NULL, ccls text, pcbt timestamptz, pcet timestamptz, cbtm timestamptz, cetm timestamptz, ctyp text,
    CONSTRAINT flight_chdt_pkey PRIMARY KEY (flid, chno),
    CONSTRAINT flight_chdt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_abtm (
    flid bigint NOT NULL, asno smallint NOT NULL, abdg text NOT NULL, abop text NOT NULL, aotm timestamptz NOT NULL,
    CONSTRAINT flight_abtm_pkey PRIMARY KEY (flid, asno),
    CONSTRAINT flight_abtm_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_chot (
    flid bigint NOT NULL, csno smallint NOT NULL, chtm timestamptz NOT NULL, chid text NOT NULL, chst text NOT NULL,
    CONSTRAINT flight_chot_pkey PRIMARY KEY (flid, csno),
    CONSTRAINT flight_chot_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_srvt (
    flid bigint NOT NULL, srtc text NOT NULL, srqt smallint NOT NULL, srst timestamptz, sret timestamptz, srpr bigint, sanr text, sarr text,
    CONSTRAINT flight_srvt_pkey PRIMARY KEY (flid, srtc),
    CONSTRAINT flight_srvt_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
-- The lists kept by key that are no resources.
CREATE TABLE flight_dely (
    flid bigint NOT NULL, code text NOT NULL, strt timestamptz, dura_minutes integer, reason text,
    CONSTRAINT flight_dely_pkey PRIMARY KEY (flid, code),
    CONSTRAINT flight_dely_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_vipf (
    flid bigint NOT NULL, vpcd text NOT NULL, vfes bigint, vipt json,
    CONSTRAINT flight_vipf_pkey PRIMARY KEY (flid, vpcd),
    CONSTRAINT flight_vipf_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);
CREATE TABLE flight_route_point (
    flid bigint NOT NULL, kind text NOT NULL, rtno smallint NOT NULL, apcd text NOT NULL, scat timestamptz, scdt timestamptz,
    CONSTRAINT flight_route_point_pkey PRIMARY KEY (flid, kind, rtno),
    CONSTRAINT flight_route_point_kind_check CHECK (kind IN ('ROUT', 'ERUT')),
    CONSTRAINT flight_route_point_flid_fkey FOREIGN KEY (flid) REFERENCES flight_schd (flid) ON DELETE CASCADE
);

-- All lists of a flight that are in tables of their own, as one object of arrays of rows, with the names of the flight JSON;
-- the entries are in no order.
-- A condition on flid reaches the primary key of every table.
CREATE VIEW flight_lists AS
SELECT flid, json_object_agg(list, entries) AS lists
FROM (
    SELECT flid, 'psdt' AS list, json_agg(row_to_json(d)) AS entries FROM flight_psdt d GROUP BY flid
    UNION ALL SELECT flid, 'gtdt', json_agg(row_to_json(d)) FROM flight_gtdt d GROUP BY flid
    UNION ALL SELECT flid, 'ckdt', json_agg(row_to_json(d)) FROM flight_ckdt d GROUP BY flid
    UNION ALL SELECT flid, 'cldt', json_agg(row_to_json(d)) FROM flight_cldt d GROUP BY flid
    UNION ALL SELECT flid, 'chdt', json_agg(row_to_json(d)) FROM flight_chdt d GROUP BY flid
    UNION ALL SELECT flid, 'abtm', json_agg(row_to_json(d)) FROM flight_abtm d GROUP BY flid
    UNION ALL SELECT flid, 'chot', json_agg(row_to_json(d)) FROM flight_chot d GROUP BY flid
    UNION ALL SELECT flid, 'srvt', json_agg(row_to_json(d)) FROM flight_srvt d GROUP BY flid
    UNION ALL SELECT flid, 'dely', json_agg(row_to_json(d))
        FROM (SELECT flid, code, strt, dura_minutes AS "duraMinutes", reason AS text FROM flight_dely) d GROUP BY flid
    UNION ALL SELECT flid, 'vipf', json_agg(row_to_json(d)) FROM flight_vipf d GROUP BY flid
    UNION ALL SELECT flid, lower(kind), json_agg(row_to_json(d)) FROM flight_route_point d GROUP BY flid, kind
) l
GROUP BY flid;

CREATE TABLE flight_history (
    flid          bigint      NOT NULL,
    operation_day date        NOT NULL,
    state_version bigint      NOT NULL,
    rule          text        NOT NULL,
    doc           jsonb       NOT NULL,
    provenance    jsonb       NOT NULL,
    swept_at      timestamptz NOT NULL,
    CONSTRAINT flight_history_pkey PRIMARY KEY (flid, operation_day, state_version)
);

-- One row per applied schedule; kept 90 days.
CREATE TABLE schd_snap_log (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    msg_id      bigint      NOT NULL,
    generation  integer     NOT NULL DEFAULT 0,
    kind        text        NOT NULL,
    scope_start timestamptz,
    scope_end   timestamptz,
    records     integer     NOT NULL,
    created     integer     NOT NULL,
    updated     integer     NOT NULL,
    unchanged   integer     NOT NULL,
    recv_at     timestamptz NOT NULL,
    CONSTRAINT schd_snap_log_pkey PRIMARY KEY (id)
);
CREATE INDEX schd_snap_log_scope_end_idx ON schd_snap_log (scope_end, recv_at);

-- +goose Down
DROP VIEW flight_lists;
DROP TABLE schd_snap_log, flight_history, flight_route_point, flight_vipf, flight_dely, flight_srvt, flight_chot, flight_abtm,
    flight_chdt, flight_cldt, flight_ckdt, flight_gtdt, flight_psdt, flight_schd;
