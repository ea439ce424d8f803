-- Counts the transactions under a role's lock, so that whoever holds the role can tell that nobody else has written under it since,
-- and that nothing of his own was lost with a server: then what he remembers is what is stored (decision 0022).
-- Half a page is left free: the attempt of a whole batch is charged in one transaction, and a row whose new version finds no room on its
-- page gets new entries in every index.
-- +goose Up
ALTER TABLE pipeline_lease ADD COLUMN turn bigint NOT NULL DEFAULT 0;

-- Flights that go break the head's row of turns, whoever deletes them: pods of the version before sweep under its lock and count
-- nothing. Before the rows are locked, as the head locks them: its lease first.
-- +goose StatementBegin
CREATE FUNCTION flights_go() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE pipeline_lease SET turn = turn + 1048576 WHERE role = 'head';
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER flight_schd_delete BEFORE DELETE ON flight_schd FOR EACH STATEMENT EXECUTE FUNCTION flights_go();

ALTER TABLE proc_state SET (fillfactor = 45);

-- +goose Down
ALTER TABLE proc_state SET (fillfactor = 70);
DROP TRIGGER flight_schd_delete ON flight_schd;
DROP FUNCTION flights_go();
ALTER TABLE pipeline_lease DROP COLUMN turn;
