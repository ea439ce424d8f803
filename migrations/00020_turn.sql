-- Counts the transactions under a role's lock, so that whoever holds the role can tell that nobody else has written under it since,
-- and that nothing of his own was lost with a server: then what he remembers is what is stored (decision 0022).
-- Half a page is left free: the attempt of a whole batch is charged in one transaction, and a row whose new version finds no room on its
-- page gets new entries in every index.
-- +goose Up
ALTER TABLE pipeline_lease ADD COLUMN turn bigint NOT NULL DEFAULT 0;
ALTER TABLE proc_state SET (fillfactor = 45);

-- +goose Down
ALTER TABLE proc_state SET (fillfactor = 70);
ALTER TABLE pipeline_lease DROP COLUMN turn;
