-- Counts the transactions under a role's lock, so that whoever holds the role can tell that nobody else has written under it since,
-- and that nothing of his own was lost with a server: then what he remembers is what is stored (decision 0022).
-- +goose Up
ALTER TABLE pipeline_lease ADD COLUMN turn bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE pipeline_lease DROP COLUMN turn;
