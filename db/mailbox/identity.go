package mailbox

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"msgexchange/jobs/fault"
)

// Identity names a mailbox: "server/schema.table". The server is named by its own id, or by its host name and port where
// it has none; so the same mailbox has another identity after a fail-over.
type Identity string

// Received gives the received times of those of the rows that are in the mailbox.
type Received func(ctx context.Context, ids []int64) (map[int64]time.Time, error)

// Recognise decides whether the mailbox that answers is the one meant. An error keeps it from being used.
type Recognise func(ctx context.Context, id Identity, received Received) error

// recognised asks Config.Recognise about the table that was found.
func (m *Mailbox) recognised(ctx context.Context, t tables) error {
	if m.recognise == nil {
		return nil
	}
	id, err := m.identity(ctx, t)
	if err != nil {
		return err
	}
	return fault.Wrap(fault.Outage, "mailbox: recognise", m.recognise(ctx, id, func(ctx context.Context, ids []int64) (map[int64]time.Time, error) {
		return m.received(ctx, t, ids)
	}))
}

func (m *Mailbox) identity(ctx context.Context, t tables) (Identity, error) {
	const op = "identify the server"
	var schema string
	if err := m.db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&schema); err != nil {
		return "", classify(op, err)
	}
	variables, err := m.Variables(ctx, "server_uuid", "server_uid", "hostname", "port")
	if err != nil {
		return "", err
	}
	server := variables["hostname"] + ":" + variables["port"]
	for _, name := range []string{"server_uid", "server_uuid"} { // MariaDB's, MySQL's
		if variables[name] != "" {
			server = variables[name]
		}
	}
	return Identity(server + "/" + schema + "." + strings.Trim(t.in, "`")), nil
}

// Variables reads those of the server's variables that it knows.
func (m *Mailbox) Variables(ctx context.Context, names ...string) (map[string]string, error) {
	const op = "read variables"
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	rows, err := m.db.QueryContext(ctx, "SHOW VARIABLES WHERE Variable_name IN ("+places(len(names))+")", args...)
	if err != nil {
		return nil, classify(op, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, classify(op, err)
		}
		out[strings.ToLower(name)] = value
	}
	return out, classify(op, rows.Err())
}

// received reads the rows by their ids, without waiting for the tables' names, which are being looked up.
func (m *Mailbox) received(ctx context.Context, t tables, ids []int64) (map[int64]time.Time, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := m.rows(ctx, "read ids", "SELECT CMINMSGS_ID, "+dateText+" FROM "+t.in+" WHERE CMINMSGS_ID IN ("+places(len(ids))+")", args...)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]time.Time, len(rows))
	for _, r := range rows {
		out[r.ID] = r.ReceivedAt
	}
	return out, nil
}

// Agree says whether what is in the mailbox speaks for its being the one that ours came from: some row must be there, and
// every one with the time we know, to the second.
func Agree(ours, theirs map[int64]time.Time) bool {
	shared := slices.DeleteFunc(slices.Collect(maps.Keys(ours)), func(id int64) bool { _, there := theirs[id]; return !there })
	return len(shared) > 0 && !slices.ContainsFunc(shared, func(id int64) bool {
		return !ours[id].Truncate(time.Second).Equal(theirs[id].Truncate(time.Second))
	})
}
