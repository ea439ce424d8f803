-- What is kept, for how long, and whether it agrees with itself (design §10; decision 0016).
-- +goose Up

-- Of a flight that was swept: what it needs to be told from one never heard of, and what messages did to it.
ALTER TABLE flight_history
    ADD COLUMN last_msg_id        bigint      NOT NULL DEFAULT 0, -- the newest message that touched it: older ones have no effect any more
    ADD COLUMN last_generation    integer     NOT NULL DEFAULT 0,
    ADD COLUMN deleted_at         timestamptz,                    -- NULL: no message deleted it
    ADD COLUMN deleted_msg_id     bigint      NOT NULL DEFAULT 0,
    ADD COLUMN deleted_generation integer     NOT NULL DEFAULT 0,
    ADD COLUMN changes            json        NOT NULL DEFAULT '[]'; -- its rows of flight_change, the first one first
CREATE INDEX flight_history_swept_at_idx ON flight_history (swept_at);

-- When a task last came to its end without an error.
ALTER TABLE periodic_run ADD COLUMN succeeded_at timestamptz;

-- What the sentinel found and has not found mended since: one row a flight and check.
CREATE TABLE consistency_difference (
    id            bigint      GENERATED ALWAYS AS IDENTITY,
    flid          bigint      NOT NULL,
    about         text        NOT NULL,
    detail        text        NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    CONSTRAINT consistency_difference_pkey PRIMARY KEY (id),
    CONSTRAINT consistency_difference_flid_about_key UNIQUE (flid, about),
    CONSTRAINT consistency_difference_about_check CHECK (about IN ('state', 'event', 'history', 'links', 'message', 'mark'))
);

-- How many rows that a counter counts have been deleted: counters never fall.
CREATE TABLE retired_rows (
    name   text   NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT retired_rows_pkey PRIMARY KEY (name)
);

-- By age, for those who delete.
CREATE INDEX schd_snap_log_recv_at_idx ON schd_snap_log (recv_at);
CREATE INDEX ref_batch_applied_at_idx ON ref_batch (applied_at, id);

-- +goose Down
DROP INDEX ref_batch_applied_at_idx, schd_snap_log_recv_at_idx;
DROP TABLE retired_rows, consistency_difference;
ALTER TABLE periodic_run DROP COLUMN succeeded_at;
DROP INDEX flight_history_swept_at_idx;
ALTER TABLE flight_history DROP COLUMN last_msg_id, DROP COLUMN last_generation, DROP COLUMN deleted_at, DROP COLUMN deleted_msg_id,
    DROP COLUMN deleted_generation, DROP COLUMN changes;
