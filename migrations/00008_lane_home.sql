-- Where a lane is at home: which mailbox it reads, and whether it may mark (contract §8.30; decision 0012).
-- +goose Up
ALTER TABLE inbox_cursor
    ADD COLUMN mailbox text, -- server/schema.table; NULL until a process has seen it
    ADD COLUMN mode    text, -- NULL until a process has started
    ADD CONSTRAINT inbox_cursor_mode_check CHECK (mode IN ('live', 'shadow'));

-- +goose Down
ALTER TABLE inbox_cursor DROP COLUMN mailbox, DROP COLUMN mode;
