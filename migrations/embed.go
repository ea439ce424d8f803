// Package migrations holds msgexchange's own schema as goose files, embedded so that the binary migrates
// without a file system (design §2). River's tables are made by River's own migrator; db.Migrate runs both.
package migrations

import "embed"

// Files are the goose migrations NNNNN_name.sql, each with Up and Down.
//
//go:embed [0-9]*.sql
var Files embed.FS
