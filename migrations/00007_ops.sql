-- What operators look at and what is done by the clock (design §10).
-- +goose Up

-- Periodic work by name: up to when its due times have been taken, so that a restart, a new leader or two weeks off
-- give one run and not none or many (K03); and how its last run went.
CREATE TABLE periodic_run (
    name        text        NOT NULL,
    due_up_to   timestamptz NOT NULL,
    job_id      bigint,
    started_at  timestamptz,
    finished_at timestamptz,
    error       text,
    report      jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT periodic_run_pkey PRIMARY KEY (name)
);

-- By received time: the archive's walk, and lists of a span of time.
CREATE INDEX proc_state_received_idx ON proc_state (coalesce(received_at, created_at), msg_id);
CREATE INDEX proc_state_hst_received_idx ON proc_state_hst (coalesce(received_at, created_at), generation, msg_id);
CREATE INDEX msg_event_created_at_idx ON msg_event (created_at, event_id);
CREATE INDEX msg_event_hst_created_at_idx ON msg_event_hst (created_at, event_id);
-- What failed, whatever became of it, and what was skipped: few rows among many.
CREATE INDEX proc_state_error_class_idx ON proc_state (error_class, msg_id) WHERE error_class IS NOT NULL;
CREATE INDEX proc_state_skipped_idx ON proc_state (msg_id) WHERE state = 'SKIPPED';
CREATE INDEX proc_state_hst_state_idx ON proc_state_hst (state, generation, msg_id) WHERE state <> 'SUCCEEDED';
CREATE INDEX proc_state_hst_error_class_idx ON proc_state_hst (error_class, generation, msg_id) WHERE error_class IS NOT NULL;
-- Events of one flight.
CREATE INDEX msg_event_flid_idx ON msg_event (flid, event_id);
CREATE INDEX msg_event_hst_flid_idx ON msg_event_hst (flid, event_id);

-- +goose Down
DROP INDEX msg_event_hst_flid_idx, msg_event_flid_idx, proc_state_hst_error_class_idx, proc_state_hst_state_idx, proc_state_skipped_idx,
    proc_state_error_class_idx, msg_event_hst_created_at_idx, msg_event_created_at_idx, proc_state_hst_received_idx, proc_state_received_idx;
DROP TABLE periodic_run;
