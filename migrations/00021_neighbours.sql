-- A holder that lives and cannot reach what its role needs says so (decision 0023), and a lane knows its topics (0012).
-- +goose Up
ALTER TABLE pipeline_lease
    ADD COLUMN troubled_at timestamptz; -- since when the holder cannot reach mailbox or Kafka, whichever the role needs; NULL: it can
ALTER TABLE inbox_cursor
    ADD COLUMN topics text; -- full names of the topics of changes and of states; NULL until a process has started

-- +goose Down
ALTER TABLE inbox_cursor DROP COLUMN topics;
ALTER TABLE pipeline_lease DROP COLUMN troubled_at;
