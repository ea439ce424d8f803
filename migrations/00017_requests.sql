-- When we learnt that a request is in the mailbox, by our own clock: sent_at is by the mailbox's, which may be ahead of ours.
-- +goose Up
ALTER TABLE req_track ADD COLUMN noted_at timestamptz;

-- +goose Down
ALTER TABLE req_track DROP COLUMN noted_at;
