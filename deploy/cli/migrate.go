package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"msgexchange/db"
)

// migrate is about the schema of our own database.
type migrate struct {
	Up     migrateUp     `cmd:"" help:"Apply what is not applied yet: our own migrations, then River's."`
	Status migrateStatus `cmd:"" help:"Show each migration and whether it is applied; ends with 1 when one is not."`
}

type (
	migrateUp     struct{ configured }
	migrateStatus struct{ configured }
)

// Help says what the command needs.
func (migrateUp) Help() string {
	return "Needs pg.dsn with the right to create tables. Many processes may run it at once: one works, the others wait."
}

// Help says what the command needs.
func (migrateStatus) Help() string { return "Needs pg.dsn. Changes nothing." }

// Run applies what is missing.
func (m migrateUp) Run(ctx context.Context, p *Process) error {
	cfg, done, err := m.load(p, "pg", "log")
	if done || err != nil {
		return err
	}
	return db.Migrate(ctx, cfg.PG.DSN, logger(p, cfg))
}

// Run prints a table of all migrations.
func (m migrateStatus) Run(ctx context.Context, p *Process) error {
	cfg, done, err := m.load(p, "pg")
	if done || err != nil {
		return err
	}
	pool, err := db.Open(ctx, cfg.PG)
	if err != nil {
		return err
	}
	defer pool.Close()
	steps, err := db.MigrationStatus(ctx, pool)
	if err != nil {
		return err
	}
	missing := 0
	table := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, step := range steps {
		applied := "missing"
		if step.Applied() {
			applied = step.AppliedAt.UTC().Format(time.RFC3339)
		} else {
			missing++
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", step.Source, step.Version, step.Name, applied) // Flush has the error
	}
	if err := table.Flush(); err != nil || missing == 0 {
		return err
	}
	return &exitError{code: exitFailed, err: errors.New("the schema is not current: run migrate up")}
}
