-- What each message did to each flight, and how it met its identity (design §5, §6; contract §4).
-- +goose Up

-- One row a message and flight it touched, in the order in which they were applied: a late message comes after newer ones.
-- before and fields are what differs, as in events on msg; change is empty when nobody could see a difference. The rows
-- of a flight stay for as long as the flight itself is kept, deleted or not (decision 0007).
CREATE TABLE flight_change (
    flid          bigint      NOT NULL,
    change_id     bigint      GENERATED ALWAYS AS IDENTITY,
    msg_id        bigint      NOT NULL,
    generation    integer     NOT NULL DEFAULT 0,
    kind          text        NOT NULL,
    change        text,
    state_version bigint      NOT NULL,
    dttm          timestamptz NOT NULL,
    before        json        NOT NULL,
    fields        json        NOT NULL,
    changed_at    timestamptz NOT NULL,
    CONSTRAINT flight_change_pkey PRIMARY KEY (flid, change_id),
    CONSTRAINT flight_change_change_check CHECK (change IN ('CREATE', 'UPDATE', 'DELETE'))
);
CREATE INDEX flight_change_msg_id_idx ON flight_change (msg_id);

-- What a message met when its identity was taken: it tells a repeated message from a counter that restarted (K26).
ALTER TABLE proc_state ADD COLUMN identity_reuse text,
    ADD CONSTRAINT proc_state_identity_reuse_check CHECK (identity_reuse IN ('duplicate', 'content', 'processed', 'wrapped'));
ALTER TABLE proc_state_hst ADD COLUMN identity_reuse text;

-- +goose Down
ALTER TABLE proc_state_hst DROP COLUMN identity_reuse;
ALTER TABLE proc_state DROP COLUMN identity_reuse;
DROP TABLE flight_change;
