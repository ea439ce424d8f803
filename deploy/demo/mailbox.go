//go:build demo

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	vitess "github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/go-sql-driver/mysql"
	"github.com/sirupsen/logrus"
)

// schemaName is the mailbox's schema.
const schemaName = "mailbox"

// mailboxServer is a server for the two tables of the dictionary's section 1, on a free port of this machine.
type mailboxServer struct {
	in, out *table
	server  *server.Server
	dsn     string
	done    chan error
}

// startMailbox starts the server; the caller closes it.
func startMailbox(ctx context.Context) (*mailboxServer, error) {
	logrus.SetOutput(io.Discard) // the engine logs each connection, and knows no other logger
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: mailbox: %w", err)
	}
	m := &mailboxServer{in: inbound(), out: outbound(), done: make(chan error, 1)}
	likeInnoDB()
	engine := sqle.NewDefault(sql.NewDatabaseProvider(schema{m.in, m.out}))
	cfg := server.Config{Protocol: "tcp", Address: l.Addr().String(), Listener: l}
	if m.server, err = server.NewServer(cfg, engine, sql.NewContext, session, nil); err != nil {
		return nil, fmt.Errorf("demo: mailbox: %w", err)
	}
	go func() { m.done <- m.server.Start() }()

	dsn := mysql.NewConfig()
	dsn.User, dsn.Net, dsn.Addr, dsn.DBName = "root", "tcp", l.Addr().String(), schemaName
	m.dsn = dsn.FormatDSN()
	return m, nil
}

// likeInnoDB gives the engine the variable with which connections bound their waits; there is nothing to wait for in it.
func likeInnoDB() {
	const name, seconds, most = "innodb_lock_wait_timeout", 50, 1 << 30
	sql.SystemVariables.AddSystemVariables([]sql.SystemVariable{&sql.MysqlSystemVariable{
		Name: name, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Both), Dynamic: true,
		Type: types.NewSystemIntType(name, 1, most, false), Default: int64(seconds),
	}})
}

func (m *mailboxServer) close() error {
	return errors.Join(m.server.Close(), <-m.done)
}

// marked says how many messages there are and how many of them carry the processed mark.
func (m *mailboxServer) marked() (all, marked int) {
	processed := m.in.schema.IndexOfColName("CMINMSGS_DATE_PROCESSED")
	return m.in.count(func(r sql.Row) bool { return r[processed] != nil })
}

// session knows nothing of transactions: BEGIN, COMMIT and ROLLBACK do nothing.
func session(_ context.Context, conn *vitess.Conn, addr string) (sql.Session, error) {
	client := sql.Client{User: conn.User, Capabilities: conn.Capabilities}
	return sql.NewBaseSessionWithClientServer(addr, client, conn.ConnectionID), nil
}

// schema is a database with our tables.
type schema []*table

// Name of the database.
func (schema) Name() string { return schemaName }

// GetTableInsensitive finds a table without regard to case.
func (s schema) GetTableInsensitive(_ *sql.Context, name string) (sql.Table, bool, error) {
	for _, t := range s {
		if strings.EqualFold(t.name, name) {
			return t, true, nil
		}
	}
	return nil, false, nil
}

// GetTableNames lists the tables.
func (s schema) GetTableNames(*sql.Context) ([]string, error) {
	var names []string
	for _, t := range s {
		names = append(names, t.name)
	}
	return names, nil
}

// inbound is CMINMSGS, outbound COUTMSGS; spelled lower case, as their owner does.
func inbound() *table {
	const p = "CMINMSGS_"
	return newTable("cminmsgs",
		&sql.Column{Name: p + "ID", Type: types.Int64},
		&sql.Column{Name: p + "CLOB_MSG", Type: types.MediumText},
		&sql.Column{Name: p + "DATE_RECEIVED", Type: types.Datetime, Nullable: true},
		&sql.Column{Name: p + "DATE_PROCESSED", Type: types.Datetime, Nullable: true},
		&sql.Column{Name: p + "SUBSYSTEM_NAME", Type: varchar(4), Nullable: true},
		&sql.Column{Name: p + "SUBSYSTEM_SEQUENCE", Type: types.Int24, Nullable: true},
		&sql.Column{Name: p + "SUBSYSTEM_DATE_SENT", Type: types.Datetime, Nullable: true},
		&sql.Column{Name: p + "SUBSYSTEM_SUBTYPE", Type: varchar(4), Nullable: true},
		&sql.Column{Name: p + "SUBSYSTEM_TYPE", Type: varchar(4), Nullable: true},
		&sql.Column{Name: p + "STATUS", Type: varchar(20), Nullable: true},
	)
}

func outbound() *table {
	const p = "COUTMSGS_"
	zero := func(name string) *sql.Column {
		return &sql.Column{Name: p + name, Type: types.Int8, Default: sql.NewUnresolvedColumnDefaultValue("0")}
	}
	return newTable("coutmsgs",
		&sql.Column{Name: p + "ID", Type: types.Int64},
		&sql.Column{Name: p + "CLOB_MSG", Type: types.MediumText, Nullable: true},
		&sql.Column{Name: p + "DATE_INSERTED", Type: types.Datetime},
		&sql.Column{Name: p + "DATE_SENT", Type: types.Datetime, Nullable: true},
		&sql.Column{Name: "ROUTINGID", Type: varchar(23)},
		zero("TRUEFALS_GROUP"),
		&sql.Column{Name: p + "NO_MESSAGES", Type: types.Int8, Nullable: true},
		&sql.Column{Name: p + "GROUP_ORDER", Type: types.Int8, Nullable: true},
		&sql.Column{Name: p + "GROUP_ID", Type: types.Int16, Nullable: true},
		zero("FINAL_GROUP_IND"), zero("ACK_REQD"), zero("ACK_RESEND_TIMES"),
		&sql.Column{Name: p + "ACK_DATE_RECV", Type: types.Datetime, Nullable: true},
		zero("ENCRYPT"), zero("ERROR"),
	)
}

func varchar(n int64) sql.Type { return types.MustCreateStringWithDefaults(sqltypes.VarChar, n) }
