package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

//go:embed mailbox.sql
var mailboxDDL string

// MailboxServer gives the DSN of an administrator of the MariaDB server, naming no schema.
func MailboxServer(tb testing.TB) string {
	tb.Helper()
	return shared.mariadb.need(tb)
}

// Mailbox makes a schema with empty CMINMSGS and COUTMSGS, as the dictionary's section 1 says, and gives the DSN of its
// administrator: user, password, address and schema, no parameters. The schema goes with the test.
func Mailbox(tb testing.TB) string {
	tb.Helper()
	cfg, err := mysql.ParseDSN(MailboxServer(tb))
	if err != nil {
		tb.Fatalf("%s: %v", EnvMariaDB, err)
	}
	schema := "mailbox_" + strings.ToLower(rand.Text())
	execMySQL(tb, cfg, "CREATE DATABASE "+schema)
	tb.Cleanup(func() { execMySQL(tb, cfg, "DROP DATABASE "+schema) })

	own := cfg.Clone()
	own.DBName = schema
	execMySQL(tb, own, mailboxDDL)
	return own.FormatDSN()
}

// execMySQL runs the statements on a connection of their own.
func execMySQL(tb testing.TB, cfg *mysql.Config, statements string) {
	tb.Helper()
	cfg = cfg.Clone()
	cfg.MultiStatements = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, statements); err != nil {
		tb.Fatal(err)
	}
}
