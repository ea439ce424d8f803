-- The message pipeline: what came in, who may write, what goes out (design §2, §3; contract §8.1).
-- +goose Up

-- One row a lane: everything with mailbox id <= committed_up_to has been taken over or is a released hole (design §4).
CREATE TABLE inbox_cursor (
    lane            text        NOT NULL,
    generation      integer     NOT NULL DEFAULT 0,
    committed_up_to bigint      NOT NULL DEFAULT 0,
    -- received time of the row at the watermark; an older id received after it means that ids run backwards (K14)
    watermark_received_at timestamptz,
    id_step         integer     NOT NULL DEFAULT 1,
    seeded_at       timestamptz,
    seeded_from     text,
    stopped_reason  text,
    stopped_at      timestamptz,
    last_polled_at  timestamptz,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT inbox_cursor_pkey PRIMARY KEY (lane),
    CONSTRAINT inbox_cursor_committed_up_to_check CHECK (committed_up_to >= 0),
    CONSTRAINT inbox_cursor_id_step_check CHECK (id_step > 0)
);

-- Ranges of missing ids. Open ones hold the watermark and age from first_seen_at; released ones are remembered so that
-- a late row is found (K11, K12, K13).
CREATE TABLE inbox_hole (
    lane          text        NOT NULL,
    generation    integer     NOT NULL DEFAULT 0,
    first_id      bigint      NOT NULL,
    last_id       bigint      NOT NULL,
    first_seen_at timestamptz NOT NULL,
    released_at   timestamptz,
    CONSTRAINT inbox_hole_pkey PRIMARY KEY (lane, generation, first_id),
    CONSTRAINT inbox_hole_range_check CHECK (first_id <= last_id),
    CONSTRAINT inbox_hole_lane_fkey FOREIGN KEY (lane) REFERENCES inbox_cursor (lane)
);

-- PIPELINE_LOCK: a transaction that writes for a role holds this row FOR UPDATE and finds its own epoch in it (O2, K04).
CREATE TABLE pipeline_lease (
    lane         text        NOT NULL,
    role         text        NOT NULL,
    epoch        bigint      NOT NULL DEFAULT 1,
    holder       text        NOT NULL DEFAULT '',
    heartbeat_at timestamptz NOT NULL,
    CONSTRAINT pipeline_lease_pkey PRIMARY KEY (lane, role),
    CONSTRAINT pipeline_lease_role_check CHECK (role IN ('poll', 'head', 'msg', 'schd', 'backfill')),
    CONSTRAINT pipeline_lease_epoch_check CHECK (epoch > 0)
) WITH (fillfactor = 10);

CREATE TABLE proc_state (
    msg_id                bigint      NOT NULL,
    generation            integer     NOT NULL DEFAULT 0,
    state                 text        NOT NULL DEFAULT 'PENDING',
    error_class           text,
    root_error_class      text,
    last_error            text,
    skip_reason           text,
    identity_key          text,
    attempts              integer     NOT NULL DEFAULT 0,
    next_attempt_at       timestamptz,
    processing_started_at timestamptz,
    received_at           timestamptz,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    finished_at           timestamptz,
    content_hash          bytea,
    sndr                  text,
    type                  text,
    styp                  text,
    seqn                  bigint,
    dttm                  timestamptz,
    late                  boolean     NOT NULL DEFAULT false,
    backfill_next_at      timestamptz,
    backfill_at           timestamptz,
    backfill_attempts     integer     NOT NULL DEFAULT 0,
    backfill_error        text,
    backfill_abandoned_at timestamptz,
    backfill_abandoned_reason text,
    replay_count          integer     NOT NULL DEFAULT 0,
    CONSTRAINT proc_state_pkey PRIMARY KEY (msg_id),
    CONSTRAINT proc_state_state_check CHECK (state IN ('PENDING', 'FAILED', 'SUCCEEDED', 'SKIPPED', 'DEAD')),
    CONSTRAINT proc_state_error_class_check CHECK (error_class IN ('MALFORMED', 'PROTOCOL', 'CODEC_ERROR', 'UNSUPPORTED', 'INFRA', 'EXHAUSTED')),
    CONSTRAINT proc_state_root_error_class_check CHECK (root_error_class IN ('MALFORMED', 'PROTOCOL', 'CODEC_ERROR', 'UNSUPPORTED', 'INFRA', 'EXHAUSTED')),
    CONSTRAINT proc_state_finished_check CHECK ((state IN ('SUCCEEDED', 'SKIPPED', 'DEAD')) = (finished_at IS NOT NULL)),
    CONSTRAINT proc_state_mark_check CHECK (state IN ('SUCCEEDED', 'SKIPPED', 'DEAD') OR (backfill_next_at IS NULL AND backfill_at IS NULL))
) WITH (fillfactor = 70);

-- The head: smallest unfinished id. Partial, so that millions of finished rows do not slow it (design §11).
CREATE INDEX proc_state_unfinished_idx ON proc_state (msg_id) WHERE state IN ('PENDING', 'FAILED');
-- Marks still owed, in the order of fair rotation (design §8).
CREATE INDEX proc_state_backfill_due_idx ON proc_state (backfill_attempts, msg_id)
    WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL;
-- Marks given up: counted by a metric and listed for operators.
CREATE INDEX proc_state_backfill_abandoned_idx ON proc_state (msg_id) WHERE backfill_abandoned_at IS NOT NULL;
-- Messages given up: what an operator lists first.
CREATE INDEX proc_state_dead_idx ON proc_state (msg_id) WHERE state = 'DEAD';

-- The text as received, zstd-compressed; a replay never depends on the mailbox owner's cleaning.
CREATE TABLE msg_raw (
    msg_id     bigint      NOT NULL,
    generation integer     NOT NULL DEFAULT 0,
    body       bytea       NOT NULL,
    size_bytes integer     NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT msg_raw_pkey PRIMARY KEY (generation, msg_id)
);
ALTER TABLE msg_raw ALTER COLUMN body SET STORAGE EXTERNAL; -- already compressed
CREATE INDEX msg_raw_created_at_idx ON msg_raw (created_at);

-- Which message first bound an identity; outlives archiving (design §5, K10).
CREATE TABLE msg_identity (
    identity_key text        NOT NULL,
    msg_id       bigint      NOT NULL,
    generation   integer     NOT NULL DEFAULT 0,
    dttm         timestamptz NOT NULL,
    content_hash bytea       NOT NULL,
    bound_at     timestamptz NOT NULL,
    rebinds      integer     NOT NULL DEFAULT 0,
    CONSTRAINT msg_identity_pkey PRIMARY KEY (identity_key)
);
CREATE INDEX msg_identity_bound_at_idx ON msg_identity (bound_at);

CREATE SEQUENCE msg_event_event_id_seq AS bigint;
-- The outbox (design §7). event_id is one sequence over both targets.
CREATE TABLE msg_event (
    event_id        bigint      NOT NULL DEFAULT nextval('msg_event_event_id_seq'),
    target          text        NOT NULL,
    msg_id          bigint      NOT NULL,
    generation      integer     NOT NULL DEFAULT 0,
    flid            bigint      NOT NULL,
    partition_key   text        NOT NULL,
    event_type      text        NOT NULL,
    state_version   bigint      NOT NULL,
    kind            text        NOT NULL,
    sndr            text        NOT NULL DEFAULT '',
    payload         json,
    state           text        NOT NULL DEFAULT 'PENDING',
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    last_error      text,
    superseded_by   bigint,
    kafka_partition integer,
    kafka_offset    bigint,
    received_at     timestamptz,
    created_at      timestamptz NOT NULL,
    sent_at         timestamptz,
    CONSTRAINT msg_event_pkey PRIMARY KEY (event_id),
    CONSTRAINT msg_event_target_check CHECK (target IN ('KAFKA:msg', 'KAFKA:schd')),
    CONSTRAINT msg_event_event_type_check CHECK (event_type IN ('UPSERT', 'TOMBSTONE')),
    CONSTRAINT msg_event_state_check CHECK (state IN ('PENDING', 'SENT', 'DEAD')),
    CONSTRAINT msg_event_partition_key_check CHECK (partition_key <> ''),
    CONSTRAINT msg_event_payload_check CHECK (payload IS NOT NULL OR event_type = 'TOMBSTONE')
) WITH (fillfactor = 80);
ALTER SEQUENCE msg_event_event_id_seq OWNED BY msg_event.event_id;
CREATE INDEX msg_event_pending_idx ON msg_event (target, event_id) WHERE state = 'PENDING';
CREATE INDEX msg_event_dead_idx ON msg_event (target, event_id) WHERE state = 'DEAD';
CREATE INDEX msg_event_msg_id_idx ON msg_event (msg_id);

CREATE TABLE req_track (
    id            bigint      GENERATED ALWAYS AS IDENTITY,
    kind          text        NOT NULL,
    state         text        NOT NULL DEFAULT 'REGISTERED',
    seqn          bigint,
    coutmsgs_id   bigint,
    window_start  timestamptz,
    window_end    timestamptz,
    registered_at timestamptz NOT NULL,
    sent_at       timestamptz,
    taken_at      timestamptz,
    done_at       timestamptz,
    expired_at    timestamptz,
    resp_msg_id   bigint,
    match         text,
    reason        text,
    CONSTRAINT req_track_pkey PRIMARY KEY (id),
    CONSTRAINT req_track_state_check CHECK (state IN ('REGISTERED', 'SENT', 'WAITING', 'DONE', 'EXPIRED'))
);
-- At most one open request a kind, enforced here and nowhere else (design §9).
CREATE UNIQUE INDEX req_track_kind_open_key ON req_track (kind) WHERE state IN ('REGISTERED', 'SENT', 'WAITING');

CREATE TABLE ref_master (
    rtype        text        NOT NULL,
    rkey         text        NOT NULL,
    doc          jsonb       NOT NULL,
    source       text        NOT NULL,
    batch_id     bigint      NOT NULL,
    refreshed_at timestamptz NOT NULL,
    CONSTRAINT ref_master_pkey PRIMARY KEY (rtype, rkey),
    CONSTRAINT ref_master_source_check CHECK (source IN ('AODB', 'ADMINAPI', 'PIPELINE'))
);

CREATE TABLE ops_audit (
    id      bigint      GENERATED ALWAYS AS IDENTITY,
    at      timestamptz NOT NULL,
    actor   text        NOT NULL,
    peer    text        NOT NULL DEFAULT '',
    action  text        NOT NULL,
    reason  text        NOT NULL DEFAULT '',
    scope   jsonb       NOT NULL DEFAULT '{}',
    dry_run boolean     NOT NULL DEFAULT false,
    result  jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT ops_audit_pkey PRIMARY KEY (id)
);
CREATE INDEX ops_audit_at_idx ON ops_audit (at);

-- The archive: the same columns, keyed by generation first (contract §8.25).
CREATE TABLE proc_state_hst (LIKE proc_state INCLUDING DEFAULTS);
ALTER TABLE proc_state_hst ADD COLUMN archived_at timestamptz NOT NULL,
    ADD CONSTRAINT proc_state_hst_pkey PRIMARY KEY (generation, msg_id);
CREATE TABLE msg_event_hst (LIKE msg_event);
ALTER TABLE msg_event_hst ADD COLUMN archived_at timestamptz NOT NULL,
    ADD CONSTRAINT msg_event_hst_pkey PRIMARY KEY (generation, event_id);
CREATE INDEX msg_event_hst_msg_id_idx ON msg_event_hst (generation, msg_id);

-- +goose Down
DROP TABLE msg_event_hst, proc_state_hst, ops_audit, ref_master, req_track, msg_event, msg_identity, msg_raw, proc_state, pipeline_lease, inbox_hole, inbox_cursor;
