package dbserver

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

//go:embed mailbox.sql
var mailboxDDL string

// MakeMailbox makes a schema with empty CMINMSGS and COUTMSGS on a MariaDB server, as the dictionary's section 1 says, and
// gives its DSN: user, password, address and schema, no parameters.
func MakeMailbox(ctx context.Context, server, schema string) (dsn string, err error) {
	cfg, err := mysql.ParseDSN(server)
	if err != nil {
		return "", fmt.Errorf("make mailbox: %w", err)
	}
	if err := execMySQL(ctx, cfg, "CREATE DATABASE "+schema); err != nil {
		return "", err
	}
	cfg.DBName = schema
	return cfg.FormatDSN(), execMySQL(ctx, cfg, mailboxDDL)
}

// DropMailbox removes a schema that MakeMailbox made.
func DropMailbox(ctx context.Context, server, schema string) error {
	cfg, err := mysql.ParseDSN(server)
	if err != nil {
		return fmt.Errorf("drop mailbox: %w", err)
	}
	return execMySQL(ctx, cfg, "DROP DATABASE "+schema)
}

// execMySQL runs the statements on a connection of their own.
func execMySQL(ctx context.Context, cfg *mysql.Config, statements string) error {
	cfg = cfg.Clone()
	cfg.MultiStatements = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, statements)
	return err
}
