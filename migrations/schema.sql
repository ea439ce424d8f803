-- The schema as the migrations leave it, for review. Written by: go test ./db -run upDownUp -update

CREATE FUNCTION public.event_span_add() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    INSERT INTO event_span (target, state, first_id, last_id, amount)
    SELECT e.target, e.state, min(e.event_id), max(e.event_id), count(*)
    FROM written e WHERE e.state <> 'SENT'
    GROUP BY e.target, e.state, e.event_id >> 10;
    RETURN NULL;
END
$$;

CREATE FUNCTION public.flights_go() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
BEGIN
    UPDATE pipeline_lease SET turn = turn + 1048576 WHERE role = 'head';
    RETURN NULL;
END
$$;

CREATE TABLE public.consistency_difference (
    id bigint NOT NULL,
    flid bigint NOT NULL,
    about text NOT NULL,
    detail text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    CONSTRAINT consistency_difference_about_check CHECK ((about = ANY (ARRAY['state'::text, 'event'::text, 'history'::text, 'links'::text, 'message'::text, 'mark'::text])))
);

ALTER TABLE public.consistency_difference ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.consistency_difference_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.delivery_term (
    lane text NOT NULL,
    target text NOT NULL,
    cluster_id text NOT NULL,
    producer_id bigint NOT NULL,
    epoch smallint NOT NULL,
    CONSTRAINT delivery_term_target_check CHECK ((target = ANY (ARRAY['KAFKA:msg'::text, 'KAFKA:schd'::text])))
);

CREATE TABLE public.event_span (
    target text NOT NULL,
    state text NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    span_id bigint NOT NULL,
    amount integer NOT NULL,
    CONSTRAINT event_span_amount_check CHECK ((amount > 0)),
    CONSTRAINT event_span_last_id_check CHECK (((last_id >= first_id) AND (last_id <= (first_id + 1023)))),
    CONSTRAINT event_span_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'DEAD'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='2000');

ALTER TABLE public.event_span ALTER COLUMN span_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.event_span_span_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.flight_abtm (
    flid bigint NOT NULL,
    asno smallint NOT NULL,
    abdg text NOT NULL,
    abop text NOT NULL,
    aotm timestamp with time zone NOT NULL
);

CREATE TABLE public.flight_change (
    flid bigint NOT NULL,
    change_id bigint NOT NULL,
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    kind text NOT NULL,
    change text,
    state_version bigint NOT NULL,
    dttm timestamp with time zone NOT NULL,
    before json NOT NULL,
    fields json NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    CONSTRAINT flight_change_change_check CHECK ((change = ANY (ARRAY['CREATE'::text, 'UPDATE'::text, 'DELETE'::text])))
);

ALTER TABLE public.flight_change ALTER COLUMN change_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.flight_change_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.flight_chdt (
    flid bigint NOT NULL,
    chno smallint NOT NULL,
    chut text NOT NULL,
    ccls text,
    pcbt timestamp with time zone,
    pcet timestamp with time zone,
    cbtm timestamp with time zone,
    cetm timestamp with time zone,
    ctyp text
);

CREATE TABLE public.flight_chot (
    flid bigint NOT NULL,
    csno smallint NOT NULL,
    chtm timestamp with time zone NOT NULL,
    chid text NOT NULL,
    chst text NOT NULL
);

CREATE TABLE public.flight_ckdt (
    flid bigint NOT NULL,
    ckno smallint NOT NULL,
    chkc text NOT NULL,
    ccls text,
    pcot timestamp with time zone,
    pcct timestamp with time zone,
    cotm timestamp with time zone,
    cctm timestamp with time zone,
    ctyp text
);

CREATE TABLE public.flight_cldt (
    flid bigint NOT NULL,
    clno smallint NOT NULL,
    belt text NOT NULL,
    bcls text,
    pcot timestamp with time zone,
    pcct timestamp with time zone,
    fbag timestamp with time zone,
    lbag timestamp with time zone,
    btyp text
);

CREATE TABLE public.flight_dely (
    flid bigint NOT NULL,
    code text NOT NULL,
    strt timestamp with time zone,
    dura_minutes integer,
    reason text
);

CREATE TABLE public.flight_gtdt (
    flid bigint NOT NULL,
    gtno smallint NOT NULL,
    gate text NOT NULL,
    pgot timestamp with time zone,
    pgct timestamp with time zone,
    gotm timestamp with time zone,
    gctm timestamp with time zone,
    gtyp text
);

CREATE TABLE public.flight_history (
    flid bigint NOT NULL,
    operation_day date NOT NULL,
    state_version bigint NOT NULL,
    rule text NOT NULL,
    doc jsonb NOT NULL,
    provenance jsonb NOT NULL,
    swept_at timestamp with time zone NOT NULL,
    last_msg_id bigint DEFAULT 0 NOT NULL,
    last_generation integer DEFAULT 0 NOT NULL,
    deleted_at timestamp with time zone,
    deleted_msg_id bigint DEFAULT 0 NOT NULL,
    deleted_generation integer DEFAULT 0 NOT NULL,
    changes json DEFAULT '[]'::json NOT NULL
);

CREATE TABLE public.flight_psdt (
    flid bigint NOT NULL,
    psno smallint NOT NULL,
    psst text NOT NULL,
    stst timestamp with time zone,
    stet timestamp with time zone
);

CREATE TABLE public.flight_route_point (
    flid bigint NOT NULL,
    kind text NOT NULL,
    rtno smallint NOT NULL,
    apcd text NOT NULL,
    scat timestamp with time zone,
    scdt timestamp with time zone,
    CONSTRAINT flight_route_point_kind_check CHECK ((kind = ANY (ARRAY['ROUT'::text, 'ERUT'::text])))
);

CREATE TABLE public.flight_srvt (
    flid bigint NOT NULL,
    srtc text NOT NULL,
    srqt smallint NOT NULL,
    srst timestamp with time zone,
    sret timestamp with time zone,
    srpr bigint,
    sanr text,
    sarr text
);

CREATE TABLE public.flight_vipf (
    flid bigint NOT NULL,
    vpcd text NOT NULL,
    vfes bigint,
    vipt json
);

CREATE VIEW public.flight_lists AS
 SELECT l.flid,
    json_object_agg(l.list, l.entries) AS lists
   FROM ( SELECT d.flid,
            'psdt'::text AS list,
            json_agg(row_to_json(d.*)) AS entries
           FROM public.flight_psdt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'gtdt'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_gtdt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'ckdt'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_ckdt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'cldt'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_cldt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'chdt'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_chdt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'abtm'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_abtm d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'chot'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_chot d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'srvt'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_srvt d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'dely'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM ( SELECT flight_dely.flid,
                    flight_dely.code,
                    flight_dely.strt,
                    flight_dely.dura_minutes AS "duraMinutes",
                    flight_dely.reason AS text
                   FROM public.flight_dely) d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            'vipf'::text,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_vipf d
          GROUP BY d.flid
        UNION ALL
         SELECT d.flid,
            lower(d.kind) AS lower,
            json_agg(row_to_json(d.*)) AS json_agg
           FROM public.flight_route_point d
          GROUP BY d.flid, d.kind) l
  GROUP BY l.flid;

CREATE TABLE public.flight_schd (
    flid bigint NOT NULL,
    operation_day date NOT NULL,
    state_version bigint NOT NULL,
    last_msg_id bigint NOT NULL,
    last_generation integer DEFAULT 0 NOT NULL,
    flno text NOT NULL,
    mvin text NOT NULL,
    sodt timestamp with time zone NOT NULL,
    maid bigint,
    stnd text,
    mafl text[] DEFAULT '{}'::text[] NOT NULL,
    abdg text,
    scalars json DEFAULT '{}'::json NOT NULL,
    stand_ops json DEFAULT '{}'::json NOT NULL,
    ext json DEFAULT '{}'::json NOT NULL,
    provenance json DEFAULT '{}'::json NOT NULL,
    published boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_msg_id bigint DEFAULT 0 NOT NULL,
    created_generation integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    deleted_msg_id bigint DEFAULT 0 NOT NULL,
    deleted_generation integer DEFAULT 0 NOT NULL,
    CONSTRAINT flight_schd_state_version_check CHECK ((state_version > 0))
)
WITH (fillfactor='50');

CREATE TABLE public.inbox_cursor (
    lane text NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    committed_up_to bigint DEFAULT 0 NOT NULL,
    watermark_received_at timestamp with time zone,
    id_step integer DEFAULT 1 NOT NULL,
    seeded_at timestamp with time zone,
    seeded_from text,
    stopped_reason text,
    stopped_at timestamp with time zone,
    last_polled_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    mailbox text,
    mode text,
    topics text,
    CONSTRAINT inbox_cursor_committed_up_to_check CHECK ((committed_up_to >= 0)),
    CONSTRAINT inbox_cursor_id_step_check CHECK ((id_step > 0)),
    CONSTRAINT inbox_cursor_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'shadow'::text])))
);

CREATE TABLE public.inbox_hole (
    lane text NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    released_at timestamp with time zone,
    CONSTRAINT inbox_hole_range_check CHECK ((first_id <= last_id))
);

CREATE TABLE public.msg_event (
    event_id bigint NOT NULL,
    target text NOT NULL,
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    flid bigint NOT NULL,
    partition_key text NOT NULL,
    event_type text NOT NULL,
    state_version bigint NOT NULL,
    kind text NOT NULL,
    sndr text DEFAULT ''::text NOT NULL,
    payload json,
    state text DEFAULT 'PENDING'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    last_error text,
    superseded_by bigint,
    kafka_partition integer,
    kafka_offset bigint,
    received_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    refusal text,
    CONSTRAINT msg_event_event_type_check CHECK ((event_type = ANY (ARRAY['UPSERT'::text, 'TOMBSTONE'::text]))),
    CONSTRAINT msg_event_partition_key_check CHECK ((partition_key <> ''::text)),
    CONSTRAINT msg_event_payload_check CHECK (((payload IS NOT NULL) OR (event_type = 'TOMBSTONE'::text))),
    CONSTRAINT msg_event_refusal_check CHECK ((refusal = ANY (ARRAY['REFUSED'::text, 'TOOLARGE'::text]))),
    CONSTRAINT msg_event_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'SENT'::text, 'DEAD'::text]))),
    CONSTRAINT msg_event_target_check CHECK ((target = ANY (ARRAY['KAFKA:msg'::text, 'KAFKA:schd'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_analyze_scale_factor='0.02', fillfactor='50');

CREATE SEQUENCE public.msg_event_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.msg_event_event_id_seq OWNED BY public.msg_event.event_id;

CREATE TABLE public.msg_event_hst (
    event_id bigint NOT NULL,
    target text NOT NULL,
    msg_id bigint NOT NULL,
    generation integer NOT NULL,
    flid bigint NOT NULL,
    partition_key text NOT NULL,
    event_type text NOT NULL,
    state_version bigint NOT NULL,
    kind text NOT NULL,
    sndr text NOT NULL,
    payload json,
    state text NOT NULL,
    attempts integer NOT NULL,
    next_attempt_at timestamp with time zone,
    last_error text,
    superseded_by bigint,
    kafka_partition integer,
    kafka_offset bigint,
    received_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    archived_at timestamp with time zone NOT NULL,
    refusal text
);

CREATE TABLE public.msg_identity (
    identity_key text NOT NULL,
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    dttm timestamp with time zone NOT NULL,
    content_hash bytea NOT NULL,
    bound_at timestamp with time zone NOT NULL,
    rebinds integer DEFAULT 0 NOT NULL
);

CREATE TABLE public.msg_raw (
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    body bytea NOT NULL,
    size_bytes integer NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.msg_raw ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.ops_audit (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    peer text DEFAULT ''::text NOT NULL,
    action text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    scope jsonb DEFAULT '{}'::jsonb NOT NULL,
    dry_run boolean DEFAULT false NOT NULL,
    result jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE public.ops_audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.ops_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.periodic_run (
    name text NOT NULL,
    due_up_to timestamp with time zone NOT NULL,
    job_id bigint,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    error text,
    report jsonb DEFAULT '{}'::jsonb NOT NULL,
    succeeded_at timestamp with time zone
);

CREATE TABLE public.pipeline_lease (
    lane text NOT NULL,
    role text NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    turn bigint DEFAULT 0 NOT NULL,
    troubled_at timestamp with time zone,
    CONSTRAINT pipeline_lease_epoch_check CHECK ((epoch > 0)),
    CONSTRAINT pipeline_lease_role_check CHECK ((role = ANY (ARRAY['poll'::text, 'head'::text, 'msg'::text, 'schd'::text, 'backfill'::text, 'request'::text])))
)
WITH (fillfactor='10');

CREATE TABLE public.proc_state (
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'PENDING'::text NOT NULL,
    error_class text,
    root_error_class text,
    last_error text,
    skip_reason text,
    identity_key text,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    processing_started_at timestamp with time zone,
    received_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    content_hash bytea,
    sndr text,
    type text,
    styp text,
    seqn bigint,
    dttm timestamp with time zone,
    late boolean DEFAULT false NOT NULL,
    backfill_next_at timestamp with time zone,
    backfill_at timestamp with time zone,
    backfill_attempts integer DEFAULT 0 NOT NULL,
    backfill_error text,
    backfill_abandoned_at timestamp with time zone,
    backfill_abandoned_reason text,
    replay_count integer DEFAULT 0 NOT NULL,
    identity_reuse text,
    failures jsonb,
    CONSTRAINT proc_state_error_class_check CHECK ((error_class = ANY (ARRAY['MALFORMED'::text, 'PROTOCOL'::text, 'CODEC_ERROR'::text, 'UNSUPPORTED'::text, 'INFRA'::text, 'EXHAUSTED'::text]))),
    CONSTRAINT proc_state_finished_check CHECK (((state = ANY (ARRAY['SUCCEEDED'::text, 'SKIPPED'::text, 'DEAD'::text])) = (finished_at IS NOT NULL))),
    CONSTRAINT proc_state_identity_reuse_check CHECK ((identity_reuse = ANY (ARRAY['duplicate'::text, 'content'::text, 'processed'::text, 'wrapped'::text]))),
    CONSTRAINT proc_state_mark_check CHECK (((state = ANY (ARRAY['SUCCEEDED'::text, 'SKIPPED'::text, 'DEAD'::text])) OR ((backfill_next_at IS NULL) AND (backfill_at IS NULL)))),
    CONSTRAINT proc_state_root_error_class_check CHECK ((root_error_class = ANY (ARRAY['MALFORMED'::text, 'PROTOCOL'::text, 'CODEC_ERROR'::text, 'UNSUPPORTED'::text, 'INFRA'::text, 'EXHAUSTED'::text]))),
    CONSTRAINT proc_state_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'FAILED'::text, 'SUCCEEDED'::text, 'SKIPPED'::text, 'DEAD'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_analyze_scale_factor='0.02', fillfactor='45');

CREATE TABLE public.proc_state_hst (
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'PENDING'::text NOT NULL,
    error_class text,
    root_error_class text,
    last_error text,
    skip_reason text,
    identity_key text,
    attempts integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone,
    processing_started_at timestamp with time zone,
    received_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    content_hash bytea,
    sndr text,
    type text,
    styp text,
    seqn bigint,
    dttm timestamp with time zone,
    late boolean DEFAULT false NOT NULL,
    backfill_next_at timestamp with time zone,
    backfill_at timestamp with time zone,
    backfill_attempts integer DEFAULT 0 NOT NULL,
    backfill_error text,
    backfill_abandoned_at timestamp with time zone,
    backfill_abandoned_reason text,
    replay_count integer DEFAULT 0 NOT NULL,
    archived_at timestamp with time zone NOT NULL,
    identity_reuse text,
    failures jsonb
);

CREATE TABLE public.ref_batch (
    id bigint NOT NULL,
    rtype text NOT NULL,
    source text NOT NULL,
    mode text NOT NULL,
    msg_id bigint,
    generation integer DEFAULT 0 NOT NULL,
    records integer NOT NULL,
    changed integer NOT NULL,
    removed integer NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    CONSTRAINT ref_batch_mode_check CHECK ((mode = ANY (ARRAY['COMPLETE'::text, 'PUT'::text, 'DROP'::text]))),
    CONSTRAINT ref_batch_source_check CHECK ((source = ANY (ARRAY['AODB'::text, 'ADMINAPI'::text, 'PIPELINE'::text])))
);

CREATE SEQUENCE public.ref_batch_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.ref_master (
    rtype text NOT NULL,
    rkey text NOT NULL,
    doc jsonb NOT NULL,
    source text NOT NULL,
    batch_id bigint NOT NULL,
    refreshed_at timestamp with time zone NOT NULL,
    msg_id bigint DEFAULT 0 NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    CONSTRAINT ref_master_source_check CHECK ((source = ANY (ARRAY['AODB'::text, 'ADMINAPI'::text, 'PIPELINE'::text])))
);

CREATE TABLE public.ref_set (
    rtype text NOT NULL,
    batch_id bigint DEFAULT 0 NOT NULL,
    source text,
    row_count integer DEFAULT 0 NOT NULL,
    refreshed_at timestamp with time zone,
    floor_generation integer DEFAULT 0 NOT NULL,
    floor_msg_id bigint DEFAULT 0 NOT NULL,
    validator text,
    failed_at timestamp with time zone,
    failure text,
    CONSTRAINT ref_set_source_check CHECK ((source = ANY (ARRAY['AODB'::text, 'ADMINAPI'::text, 'PIPELINE'::text])))
);

CREATE TABLE public.req_track (
    id bigint NOT NULL,
    kind text NOT NULL,
    state text DEFAULT 'REGISTERED'::text NOT NULL,
    seqn bigint,
    coutmsgs_id bigint,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    registered_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    taken_at timestamp with time zone,
    done_at timestamp with time zone,
    expired_at timestamp with time zone,
    resp_msg_id bigint,
    match text,
    reason text,
    body text,
    sending_at timestamp with time zone,
    actor text DEFAULT ''::text NOT NULL,
    noted_at timestamp with time zone,
    CONSTRAINT req_track_kind_check CHECK (((kind = 'RQFD-NONE'::text) OR (kind ~ '^RQRD-[A-Z]{4}$'::text))),
    CONSTRAINT req_track_match_check CHECK ((match = ANY (ARRAY['exact'::text, 'inferred'::text, 'shadow'::text]))),
    CONSTRAINT req_track_seqn_check CHECK (((seqn >= 1) AND (seqn <= 999999))),
    CONSTRAINT req_track_state_check CHECK ((state = ANY (ARRAY['REGISTERED'::text, 'SENT'::text, 'WAITING'::text, 'DONE'::text, 'EXPIRED'::text])))
);

ALTER TABLE public.req_track ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.req_track_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE public.req_track_seqn_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 999999
    CACHE 1
    CYCLE;

ALTER SEQUENCE public.req_track_seqn_seq OWNED BY public.req_track.seqn;

CREATE TABLE public.retired_rows (
    name text NOT NULL,
    amount bigint NOT NULL
);

CREATE TABLE public.schd_snap_log (
    id bigint NOT NULL,
    msg_id bigint NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    kind text NOT NULL,
    scope_start timestamp with time zone,
    scope_end timestamp with time zone,
    records integer NOT NULL,
    created integer NOT NULL,
    updated integer NOT NULL,
    unchanged integer NOT NULL,
    recv_at timestamp with time zone NOT NULL
);

ALTER TABLE public.schd_snap_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.schd_snap_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.msg_event ALTER COLUMN event_id SET DEFAULT nextval('public.msg_event_event_id_seq'::regclass);

ALTER TABLE ONLY public.consistency_difference
    ADD CONSTRAINT consistency_difference_flid_about_key UNIQUE (flid, about);

ALTER TABLE ONLY public.consistency_difference
    ADD CONSTRAINT consistency_difference_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_term
    ADD CONSTRAINT delivery_term_pkey PRIMARY KEY (lane, target);

ALTER TABLE ONLY public.event_span
    ADD CONSTRAINT event_span_pkey PRIMARY KEY (target, state, first_id, span_id);

ALTER TABLE ONLY public.flight_abtm
    ADD CONSTRAINT flight_abtm_pkey PRIMARY KEY (flid, asno);

ALTER TABLE ONLY public.flight_change
    ADD CONSTRAINT flight_change_pkey PRIMARY KEY (flid, change_id);

ALTER TABLE ONLY public.flight_chdt
    ADD CONSTRAINT flight_chdt_pkey PRIMARY KEY (flid, chno);

ALTER TABLE ONLY public.flight_chot
    ADD CONSTRAINT flight_chot_pkey PRIMARY KEY (flid, csno);

ALTER TABLE ONLY public.flight_ckdt
    ADD CONSTRAINT flight_ckdt_pkey PRIMARY KEY (flid, ckno);

ALTER TABLE ONLY public.flight_cldt
    ADD CONSTRAINT flight_cldt_pkey PRIMARY KEY (flid, clno);

ALTER TABLE ONLY public.flight_dely
    ADD CONSTRAINT flight_dely_pkey PRIMARY KEY (flid, code);

ALTER TABLE ONLY public.flight_gtdt
    ADD CONSTRAINT flight_gtdt_pkey PRIMARY KEY (flid, gtno);

ALTER TABLE ONLY public.flight_history
    ADD CONSTRAINT flight_history_pkey PRIMARY KEY (flid, operation_day, state_version);

ALTER TABLE ONLY public.flight_psdt
    ADD CONSTRAINT flight_psdt_pkey PRIMARY KEY (flid, psno);

ALTER TABLE ONLY public.flight_route_point
    ADD CONSTRAINT flight_route_point_pkey PRIMARY KEY (flid, kind, rtno);

ALTER TABLE ONLY public.flight_schd
    ADD CONSTRAINT flight_schd_pkey PRIMARY KEY (flid);

ALTER TABLE ONLY public.flight_srvt
    ADD CONSTRAINT flight_srvt_pkey PRIMARY KEY (flid, srtc);

ALTER TABLE ONLY public.flight_vipf
    ADD CONSTRAINT flight_vipf_pkey PRIMARY KEY (flid, vpcd);

ALTER TABLE ONLY public.inbox_cursor
    ADD CONSTRAINT inbox_cursor_pkey PRIMARY KEY (lane);

ALTER TABLE ONLY public.inbox_hole
    ADD CONSTRAINT inbox_hole_pkey PRIMARY KEY (lane, generation, first_id);

ALTER TABLE ONLY public.msg_event_hst
    ADD CONSTRAINT msg_event_hst_pkey PRIMARY KEY (generation, event_id);

ALTER TABLE ONLY public.msg_event
    ADD CONSTRAINT msg_event_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.msg_identity
    ADD CONSTRAINT msg_identity_pkey PRIMARY KEY (identity_key);

ALTER TABLE ONLY public.msg_raw
    ADD CONSTRAINT msg_raw_pkey PRIMARY KEY (generation, msg_id);

ALTER TABLE ONLY public.ops_audit
    ADD CONSTRAINT ops_audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.periodic_run
    ADD CONSTRAINT periodic_run_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.pipeline_lease
    ADD CONSTRAINT pipeline_lease_pkey PRIMARY KEY (lane, role);

ALTER TABLE ONLY public.proc_state_hst
    ADD CONSTRAINT proc_state_hst_pkey PRIMARY KEY (generation, msg_id);

ALTER TABLE ONLY public.proc_state
    ADD CONSTRAINT proc_state_pkey PRIMARY KEY (msg_id);

ALTER TABLE ONLY public.ref_batch
    ADD CONSTRAINT ref_batch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.ref_master
    ADD CONSTRAINT ref_master_pkey PRIMARY KEY (rtype, rkey);

ALTER TABLE ONLY public.ref_set
    ADD CONSTRAINT ref_set_pkey PRIMARY KEY (rtype);

ALTER TABLE ONLY public.req_track
    ADD CONSTRAINT req_track_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.retired_rows
    ADD CONSTRAINT retired_rows_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.schd_snap_log
    ADD CONSTRAINT schd_snap_log_pkey PRIMARY KEY (id);

CREATE INDEX flight_change_msg_id_idx ON public.flight_change USING btree (msg_id);

CREATE INDEX flight_gtdt_gate_idx ON public.flight_gtdt USING btree (gate);

CREATE INDEX flight_history_swept_at_idx ON public.flight_history USING btree (swept_at);

CREATE INDEX flight_psdt_psst_idx ON public.flight_psdt USING btree (psst);

CREATE INDEX flight_schd_flno_idx ON public.flight_schd USING btree (flno);

CREATE INDEX flight_schd_live_idx ON public.flight_schd USING btree (sodt, flid) WHERE (deleted_at IS NULL);

CREATE INDEX flight_schd_maid_idx ON public.flight_schd USING btree (maid) WHERE (maid IS NOT NULL);

CREATE INDEX flight_schd_operation_day_idx ON public.flight_schd USING btree (operation_day, sodt, flid);

CREATE UNIQUE INDEX inbox_cursor_one_lane ON public.inbox_cursor USING btree ((true));

CREATE INDEX msg_event_created_at_idx ON public.msg_event USING btree (created_at, event_id);

CREATE INDEX msg_event_flid_idx ON public.msg_event USING btree (flid, event_id);

CREATE INDEX msg_event_hst_created_at_idx ON public.msg_event_hst USING btree (created_at, event_id);

CREATE INDEX msg_event_hst_dead_idx ON public.msg_event_hst USING btree (created_at, event_id) WHERE (state = 'DEAD'::text);

CREATE INDEX msg_event_hst_flid_idx ON public.msg_event_hst USING btree (flid, event_id);

CREATE INDEX msg_event_hst_msg_id_idx ON public.msg_event_hst USING btree (generation, msg_id);

CREATE INDEX msg_event_msg_id_idx ON public.msg_event USING btree (msg_id);

CREATE INDEX msg_identity_bound_at_idx ON public.msg_identity USING brin (bound_at) WITH (autosummarize='on');

CREATE INDEX msg_raw_created_at_idx ON public.msg_raw USING brin (created_at) WITH (autosummarize='on');

CREATE INDEX ops_audit_action_idx ON public.ops_audit USING btree (action, at, id);

CREATE INDEX ops_audit_actor_idx ON public.ops_audit USING btree (actor, at, id);

CREATE INDEX ops_audit_at_idx ON public.ops_audit USING btree (at);

CREATE INDEX proc_state_backfill_abandoned_idx ON public.proc_state USING btree (msg_id) WHERE (backfill_abandoned_at IS NOT NULL);

CREATE INDEX proc_state_backfill_due_idx ON public.proc_state USING btree (backfill_attempts, msg_id) WHERE ((backfill_next_at IS NOT NULL) AND (backfill_abandoned_at IS NULL));

CREATE INDEX proc_state_dead_idx ON public.proc_state USING btree (msg_id) WHERE (state = 'DEAD'::text);

CREATE INDEX proc_state_error_class_idx ON public.proc_state USING btree (error_class, msg_id) WHERE (error_class IS NOT NULL);

CREATE INDEX proc_state_hst_abandoned_idx ON public.proc_state_hst USING btree (msg_id) WHERE (backfill_abandoned_at IS NOT NULL);

CREATE INDEX proc_state_hst_error_class_idx ON public.proc_state_hst USING btree (error_class, generation, msg_id) WHERE (error_class IS NOT NULL);

CREATE INDEX proc_state_hst_identity_reuse_idx ON public.proc_state_hst USING btree (identity_reuse, msg_id) WHERE (identity_reuse IS NOT NULL);

CREATE INDEX proc_state_hst_kind_idx ON public.proc_state_hst USING btree (type, styp) WHERE (type IS NOT NULL);

CREATE INDEX proc_state_hst_last_error_idx ON public.proc_state_hst USING btree (COALESCE(received_at, created_at), msg_id) WHERE (last_error IS NOT NULL);

CREATE INDEX proc_state_hst_late_idx ON public.proc_state_hst USING btree (msg_id) WHERE late;

CREATE INDEX proc_state_hst_received_idx ON public.proc_state_hst USING btree (COALESCE(received_at, created_at), generation, msg_id);

CREATE INDEX proc_state_hst_state_idx ON public.proc_state_hst USING btree (state, generation, msg_id) WHERE (state <> 'SUCCEEDED'::text);

CREATE INDEX proc_state_identity_reuse_idx ON public.proc_state USING btree (identity_reuse, msg_id) WHERE (identity_reuse IS NOT NULL);

CREATE INDEX proc_state_kind_idx ON public.proc_state USING btree (type, styp) WHERE (type IS NOT NULL);

CREATE INDEX proc_state_last_error_idx ON public.proc_state USING btree (COALESCE(received_at, created_at), msg_id) WHERE (last_error IS NOT NULL);

CREATE INDEX proc_state_late_idx ON public.proc_state USING btree (msg_id) WHERE late;

CREATE INDEX proc_state_received_idx ON public.proc_state USING btree (COALESCE(received_at, created_at), msg_id);

CREATE INDEX proc_state_skipped_idx ON public.proc_state USING btree (msg_id) WHERE (state = 'SKIPPED'::text);

CREATE INDEX proc_state_unfinished_idx ON public.proc_state USING btree (msg_id) WHERE (state = ANY (ARRAY['PENDING'::text, 'FAILED'::text]));

CREATE INDEX ref_batch_applied_at_idx ON public.ref_batch USING btree (applied_at, id);

CREATE INDEX ref_batch_rtype_id_idx ON public.ref_batch USING btree (rtype, id);

CREATE INDEX req_track_expired_idx ON public.req_track USING btree (id) WHERE (state = 'EXPIRED'::text);

CREATE INDEX req_track_kind_id_idx ON public.req_track USING btree (kind, id);

CREATE UNIQUE INDEX req_track_kind_open_key ON public.req_track USING btree (kind) WHERE (state = ANY (ARRAY['REGISTERED'::text, 'SENT'::text, 'WAITING'::text]));

CREATE INDEX req_track_registered_at_idx ON public.req_track USING btree (registered_at, id);

CREATE INDEX req_track_state_idx ON public.req_track USING btree (state, registered_at, id);

CREATE INDEX schd_snap_log_recv_at_idx ON public.schd_snap_log USING btree (recv_at);

CREATE INDEX schd_snap_log_scope_end_idx ON public.schd_snap_log USING btree (scope_end, recv_at);

CREATE TRIGGER event_span_insert AFTER INSERT ON public.msg_event REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.event_span_add();

CREATE TRIGGER event_span_update AFTER UPDATE ON public.msg_event REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION public.event_span_add();

CREATE TRIGGER flight_schd_delete BEFORE DELETE ON public.flight_schd FOR EACH STATEMENT EXECUTE FUNCTION public.flights_go();

ALTER TABLE ONLY public.flight_abtm
    ADD CONSTRAINT flight_abtm_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_chdt
    ADD CONSTRAINT flight_chdt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_chot
    ADD CONSTRAINT flight_chot_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_ckdt
    ADD CONSTRAINT flight_ckdt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_cldt
    ADD CONSTRAINT flight_cldt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_dely
    ADD CONSTRAINT flight_dely_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_gtdt
    ADD CONSTRAINT flight_gtdt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_psdt
    ADD CONSTRAINT flight_psdt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_route_point
    ADD CONSTRAINT flight_route_point_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_srvt
    ADD CONSTRAINT flight_srvt_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.flight_vipf
    ADD CONSTRAINT flight_vipf_flid_fkey FOREIGN KEY (flid) REFERENCES public.flight_schd(flid) ON DELETE CASCADE;

ALTER TABLE ONLY public.inbox_hole
    ADD CONSTRAINT inbox_hole_lane_fkey FOREIGN KEY (lane) REFERENCES public.inbox_cursor(lane);

