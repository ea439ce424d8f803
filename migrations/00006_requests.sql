-- The life of requests and the sets of reference data (design §9).
-- +goose Up
ALTER TABLE pipeline_lease DROP CONSTRAINT pipeline_lease_role_check,
    ADD CONSTRAINT pipeline_lease_role_check CHECK (role IN ('poll', 'head', 'msg', 'schd', 'backfill', 'request'));

-- Our counter towards the airport's database: six digits, 1 again after 999999, never 0 (dictionary 10).
CREATE SEQUENCE req_track_seqn_seq AS integer MINVALUE 1 MAXVALUE 999999 CYCLE OWNED BY req_track.seqn;

-- body: the text for the mailbox, so that a second try writes exactly the first one's. sending_at: the mailbox's clock just
-- before it was put there, known before sent_at is. actor: who asked.
ALTER TABLE req_track
    ADD COLUMN body text,
    ADD COLUMN sending_at timestamptz,
    ADD COLUMN actor text NOT NULL DEFAULT '',
    ADD CONSTRAINT req_track_kind_check CHECK (kind = 'RQFD-NONE' OR kind ~ '^RQRD-[A-Z]{4}$'),
    ADD CONSTRAINT req_track_match_check CHECK (match IN ('exact', 'inferred', 'shadow')),
    ADD CONSTRAINT req_track_seqn_check CHECK (seqn BETWEEN 1 AND 999999);
-- The newest of a kind, for answers.
CREATE INDEX req_track_kind_id_idx ON req_track (kind, id);
-- What is counted for a metric.
CREATE INDEX req_track_expired_idx ON req_track (id) WHERE state = 'EXPIRED';

-- One row a type of reference data: which batch readers see, when it was refreshed, and how the last try to refresh it from
-- the neighbour went. floor_*: the newest message that stated the whole list or removed from it; older ones are not applied.
CREATE SEQUENCE ref_batch_id_seq AS bigint;
CREATE TABLE ref_set (
    rtype            text        NOT NULL,
    batch_id         bigint      NOT NULL DEFAULT 0,
    source           text,
    row_count        integer     NOT NULL DEFAULT 0,
    refreshed_at     timestamptz,
    floor_generation integer     NOT NULL DEFAULT 0,
    floor_msg_id     bigint      NOT NULL DEFAULT 0,
    validator        text,
    failed_at        timestamptz,
    failure          text,
    CONSTRAINT ref_set_pkey PRIMARY KEY (rtype),
    CONSTRAINT ref_set_source_check CHECK (source IN ('AODB', 'ADMINAPI', 'PIPELINE'))
);

-- The audit of what was applied: one row a batch.
CREATE TABLE ref_batch (
    id         bigint      NOT NULL,
    rtype      text        NOT NULL,
    source     text        NOT NULL,
    mode       text        NOT NULL,
    msg_id     bigint,
    generation integer     NOT NULL DEFAULT 0,
    records    integer     NOT NULL,
    changed    integer     NOT NULL,
    removed    integer     NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT ref_batch_pkey PRIMARY KEY (id),
    CONSTRAINT ref_batch_source_check CHECK (source IN ('AODB', 'ADMINAPI', 'PIPELINE')),
    CONSTRAINT ref_batch_mode_check CHECK (mode IN ('COMPLETE', 'PUT', 'DROP'))
);
CREATE INDEX ref_batch_rtype_id_idx ON ref_batch (rtype, id);

-- Which message brought the record; 0 when none did.
ALTER TABLE ref_master
    ADD COLUMN msg_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN generation integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE ref_master DROP COLUMN msg_id, DROP COLUMN generation;
DROP TABLE ref_batch, ref_set;
DROP SEQUENCE ref_batch_id_seq;
DROP INDEX req_track_expired_idx, req_track_kind_id_idx;
ALTER TABLE req_track DROP CONSTRAINT req_track_seqn_check, DROP CONSTRAINT req_track_match_check, DROP CONSTRAINT req_track_kind_check,
    DROP COLUMN actor, DROP COLUMN sending_at, DROP COLUMN body;
DROP SEQUENCE req_track_seqn_seq;
DELETE FROM pipeline_lease WHERE role = 'request';
ALTER TABLE pipeline_lease DROP CONSTRAINT pipeline_lease_role_check,
    ADD CONSTRAINT pipeline_lease_role_check CHECK (role IN ('poll', 'head', 'msg', 'schd', 'backfill'));
