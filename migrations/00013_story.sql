-- What those ask who look after one message, or for messages by what they have in common (design §10).
-- failures: each failed try of a message, {at, replay, attempt, class, error}, the last 50. The indexes serve the lists under
-- /ops on tables of 10 million rows; all but two are partial and nearly empty. On the hot path each message costs one small
-- entry more, in proc_state_kind_idx, once its type is known.
-- +goose Up
ALTER TABLE proc_state ADD COLUMN failures jsonb;
ALTER TABLE proc_state_hst ADD COLUMN failures jsonb;

CREATE INDEX proc_state_kind_idx ON proc_state (type, styp) WHERE type IS NOT NULL;
CREATE INDEX proc_state_last_error_idx ON proc_state (coalesce(received_at, created_at), msg_id) WHERE last_error IS NOT NULL;
CREATE INDEX proc_state_identity_reuse_idx ON proc_state (identity_reuse, msg_id) WHERE identity_reuse IS NOT NULL;
CREATE INDEX proc_state_late_idx ON proc_state (msg_id) WHERE late;

CREATE INDEX proc_state_hst_kind_idx ON proc_state_hst (type, styp) WHERE type IS NOT NULL;
CREATE INDEX proc_state_hst_last_error_idx ON proc_state_hst (coalesce(received_at, created_at), msg_id) WHERE last_error IS NOT NULL;
CREATE INDEX proc_state_hst_identity_reuse_idx ON proc_state_hst (identity_reuse, msg_id) WHERE identity_reuse IS NOT NULL;
CREATE INDEX proc_state_hst_late_idx ON proc_state_hst (msg_id) WHERE late;
CREATE INDEX proc_state_hst_abandoned_idx ON proc_state_hst (msg_id) WHERE backfill_abandoned_at IS NOT NULL;

CREATE INDEX msg_event_hst_dead_idx ON msg_event_hst (created_at, event_id) WHERE state = 'DEAD';
CREATE INDEX req_track_registered_at_idx ON req_track (registered_at, id);
CREATE INDEX req_track_state_idx ON req_track (state, registered_at, id);
CREATE INDEX ops_audit_actor_idx ON ops_audit (actor, at, id);
CREATE INDEX ops_audit_action_idx ON ops_audit (action, at, id);

-- +goose Down
DROP INDEX ops_audit_action_idx, ops_audit_actor_idx, req_track_state_idx, req_track_registered_at_idx, msg_event_hst_dead_idx;
DROP INDEX proc_state_hst_abandoned_idx, proc_state_hst_late_idx, proc_state_hst_identity_reuse_idx, proc_state_hst_last_error_idx, proc_state_hst_kind_idx;
DROP INDEX proc_state_late_idx, proc_state_identity_reuse_idx, proc_state_last_error_idx, proc_state_kind_idx;
ALTER TABLE proc_state_hst DROP COLUMN failures;
ALTER TABLE proc_state DROP COLUMN failures;
