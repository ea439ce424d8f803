-- Where events wait, beside the events (decision 0021). An index that says which events wait, or which are dead, has to be written
-- for every event that is sent, and with it every other index of its table: PostgreSQL updates a row in place only when no index
-- mentions what changes. So msg_event has none, and event_span names ranges of ids instead, one for many events.
-- +goose Up

-- Each event that is PENDING, or DEAD, lies in a span of its target and state. A span may have no such event any more: it goes when
-- somebody finds it empty. So there is nothing to keep in step, and whoever takes an event out of a state need not know of spans.
CREATE TABLE event_span (
    target   text    NOT NULL,
    state    text    NOT NULL,
    first_id bigint  NOT NULL,
    last_id  bigint  NOT NULL,
    span_id  bigint  GENERATED ALWAYS AS IDENTITY,
    amount   integer NOT NULL, -- the events that came into it
    CONSTRAINT event_span_pkey PRIMARY KEY (target, state, first_id, span_id),
    CONSTRAINT event_span_state_check CHECK (state IN ('PENDING', 'DEAD')),
    -- Reading a span is reading its ids: an old event that waits again must not make a span of a million.
    CONSTRAINT event_span_last_id_check CHECK (last_id BETWEEN first_id AND first_id + 1023),
    CONSTRAINT event_span_amount_check CHECK (amount > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000);

-- Whoever writes events, also by hand, writes their spans in the same transaction. A span is made for each statement, never shared
-- with another transaction: one that goes because it is found empty cannot take an event along that waits since.
-- +goose StatementBegin
CREATE FUNCTION event_span_add() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO event_span (target, state, first_id, last_id, amount)
    SELECT e.target, e.state, min(e.event_id), max(e.event_id), count(*)
    FROM written e WHERE e.state <> 'SENT'
    GROUP BY e.target, e.state, e.event_id >> 10;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

LOCK TABLE msg_event IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO event_span (target, state, first_id, last_id, amount)
SELECT e.target, e.state, min(e.event_id), max(e.event_id), count(*)
FROM (SELECT p.target, p.state, p.event_id FROM msg_event p WHERE p.state = 'PENDING'
      UNION ALL
      SELECT d.target, d.state, d.event_id FROM msg_event d WHERE d.state = 'DEAD') e
GROUP BY e.target, e.state, e.event_id >> 10;
CREATE TRIGGER event_span_insert AFTER INSERT ON msg_event REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION event_span_add();
CREATE TRIGGER event_span_update AFTER UPDATE ON msg_event REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION event_span_add();

-- Half of each page is left for the second version of its rows: a batch marks all of a page in one transaction, within which
-- nothing can be cleared away.
ALTER TABLE msg_event SET (fillfactor = 50);
DROP INDEX msg_event_pending_idx, msg_event_dead_idx;

-- +goose Down
CREATE INDEX msg_event_dead_idx ON msg_event (target, event_id) WHERE state = 'DEAD';
CREATE INDEX msg_event_pending_idx ON msg_event (target, event_id) WHERE state = 'PENDING';
ALTER TABLE msg_event SET (fillfactor = 80);
DROP TRIGGER event_span_update ON msg_event;
DROP TRIGGER event_span_insert ON msg_event;
DROP FUNCTION event_span_add();
DROP TABLE event_span;
