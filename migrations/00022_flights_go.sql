-- Flights that go break the head's row of turns, whoever deletes them: pods of the version before sweep under its lock and count
-- nothing. Before the rows are locked, as the head locks them: its lease first.
-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION flights_go() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE pipeline_lease SET turn = turn + 1048576 WHERE role = 'head';
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER flight_schd_delete BEFORE DELETE ON flight_schd FOR EACH STATEMENT EXECUTE FUNCTION flights_go();

-- +goose Down
DROP TRIGGER flight_schd_delete ON flight_schd;
DROP FUNCTION flights_go();
