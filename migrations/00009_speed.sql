-- Cheaper writes on the hot path, and reads that stay cheap (design §11).
-- +goose Up

-- These are asked for by age alone, and rows lie in the order of their age: a BRIN finds them as well as a tree does, and a row
-- that is written need not be entered.
DROP INDEX msg_raw_created_at_idx, msg_identity_bound_at_idx;
CREATE INDEX msg_raw_created_at_idx ON msg_raw USING brin (created_at) WITH (autosummarize = on);
CREATE INDEX msg_identity_bound_at_idx ON msg_identity USING brin (bound_at) WITH (autosummarize = on);

-- Rows that left a queue stay in its index until a vacuum, and by default that comes when a fifth of the table is dead: millions,
-- where the archive keeps millions.
ALTER TABLE proc_state SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE msg_event SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.02);

-- +goose Down
ALTER TABLE msg_event RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor);
ALTER TABLE proc_state RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor);
DROP INDEX msg_raw_created_at_idx, msg_identity_bound_at_idx;
CREATE INDEX msg_identity_bound_at_idx ON msg_identity (bound_at);
CREATE INDEX msg_raw_created_at_idx ON msg_raw (created_at);
