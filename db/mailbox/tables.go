package mailbox

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"msgexchange/jobs/fault"
)

// names finds how the two tables are really spelled: servers differ in whether case matters (contract §8.4).
type names struct {
	in, out string // as configured

	mu    sync.Mutex
	found *tables
}

// tables are quoted names as the server has them.
type tables struct{ in, out string }

// tables looks the names up once; while the server cannot be asked, every call tries again.
func (m *Mailbox) tables(ctx context.Context) (tables, error) {
	m.names.mu.Lock()
	defer m.names.mu.Unlock()
	if m.names.found != nil {
		return *m.names.found, nil
	}
	rows, err := m.db.QueryContext(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
	if err != nil {
		return tables{}, classify("find tables", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return tables{}, classify("find tables", err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		return tables{}, classify("find tables", err)
	}
	t := tables{in: pick(all, m.names.in), out: pick(all, m.names.out)}
	if t.in == "" || t.out == "" {
		return tables{}, fault.New(fault.Outage, "mailbox: find tables", "there is no table %s or no table %s, or no right to see it", m.names.in, m.names.out)
	}
	t = tables{in: "`" + t.in + "`", out: "`" + t.out + "`"}
	if err := m.recognised(ctx, t); err != nil {
		return tables{}, err
	}
	m.names.found = &t
	return t, nil
}

// pick prefers the exact spelling.
func pick(all []string, want string) string {
	best := ""
	for _, name := range all {
		if name == want {
			return name
		}
		if strings.EqualFold(name, want) {
			best = name
		}
	}
	return best
}

// in gives the quoted name of CMINMSGS put into the statement for %s.
func (m *Mailbox) in(ctx context.Context, statement string) (string, error) {
	t, err := m.tables(ctx)
	return fmt.Sprintf(statement, t.in), err
}

// TableIn gives the name of CMINMSGS as the server spells it.
func (m *Mailbox) TableIn(ctx context.Context) (string, error) {
	t, err := m.tables(ctx)
	return strings.Trim(t.in, "`"), err
}

// TableOut gives the name of COUTMSGS as the server spells it.
func (m *Mailbox) TableOut(ctx context.Context) (string, error) {
	t, err := m.tables(ctx)
	return strings.Trim(t.out, "`"), err
}
