-- +goose Up
-- Whom the brokers know as the sender of a target (decision 0009). Claimed under the role's fence: each claim takes the next
-- epoch of the same producer, so that a partition refuses what a predecessor still has under way.
CREATE TABLE delivery_term (
    lane        text     NOT NULL,
    target      text     NOT NULL,
    cluster_id  text     NOT NULL,
    producer_id bigint   NOT NULL,
    epoch       smallint NOT NULL,
    CONSTRAINT delivery_term_pkey PRIMARY KEY (lane, target),
    CONSTRAINT delivery_term_target_check CHECK (target IN ('KAFKA:msg', 'KAFKA:schd'))
);

-- What the broker had against the event the last time: REFUSED its content, or TOOLARGE.
ALTER TABLE msg_event ADD COLUMN refusal text
    CONSTRAINT msg_event_refusal_check CHECK (refusal IN ('REFUSED', 'TOOLARGE'));
ALTER TABLE msg_event_hst ADD COLUMN refusal text;

-- +goose Down
ALTER TABLE msg_event_hst DROP COLUMN refusal;
ALTER TABLE msg_event DROP COLUMN refusal;
DROP TABLE delivery_term;
