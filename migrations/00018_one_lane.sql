-- A database is one lane's (decision 0020): flights, messages and events name none, so that a second lane would work on the first
-- one's. A lane that was named by mistake and has taken nothing over goes.
-- +goose Up
DELETE FROM inbox_cursor c
WHERE c.committed_up_to = 0 AND c.generation = 0 AND c.seeded_at IS NULL
  AND NOT EXISTS (SELECT FROM inbox_hole h WHERE h.lane = c.lane)
  AND EXISTS (SELECT FROM inbox_cursor o WHERE o.lane <> c.lane AND o.committed_up_to > 0);
DELETE FROM pipeline_lease p
WHERE EXISTS (SELECT FROM inbox_cursor) AND NOT EXISTS (SELECT FROM inbox_cursor c WHERE c.lane = p.lane);
CREATE UNIQUE INDEX inbox_cursor_one_lane ON inbox_cursor ((true));

-- +goose Down
DROP INDEX inbox_cursor_one_lane;
