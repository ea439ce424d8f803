package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"msgexchange/migrations"
)

// Waiting for another pod's migrations: one look a second, for ten minutes.
const (
	lockPeriodSeconds = 1
	lockLooks         = 600
)

// unlockTimeout bounds giving the lock back; a closed session gives it back anyway.
const unlockTimeout = 5 * time.Second

// Migrate brings our schema and then River's to the newest version this program knows. It may be called by many pods at
// once: one works, the others wait and then find nothing to do. A schema newer than this program is left alone.
func Migrate(ctx context.Context, dsn string, log *slog.Logger) error {
	pool, err := openForMigration(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer func() { _ = sqlDB.Close() }()

	return withLock(ctx, sqlDB, func() error {
		own, err := migrateOwn(ctx, sqlDB, log)
		if err != nil {
			return fmt.Errorf("migrate: %w", Classify(err))
		}
		river, err := migrateRiver(ctx, pool, log)
		if err != nil {
			return fmt.Errorf("migrate river: %w", Classify(err))
		}
		if own+river == 0 {
			log.InfoContext(ctx, "schema is current")
		}
		return nil
	})
}

// openForMigration is a pool without the time limits of normal work, but for locks: a migration that waits for a lock
// makes everybody else wait behind it.
func openForMigration(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	params := cfg.ConnConfig.RuntimeParams
	setDefault(params, "lock_timeout", sessionParams()["lock_timeout"])
	setDefault(params, "TimeZone", "UTC")
	setDefault(params, "application_name", "msgexchange/migrate")
	cfg.MaxConns = max(cfg.MaxConns, 3) // the lock, goose, River
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	if _, err := CheckServer(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return pool, nil
}

// withLock runs fn while this session holds the migration lock. It looks for the lock again and again: a session that
// waited inside the server would hold up CREATE INDEX CONCURRENTLY.
func withLock(ctx context.Context, sqlDB *sql.DB, fn func() error) (err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPeriodSeconds, lockLooks))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	conn, err := sqlDB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", Classify(err))
	}
	defer func() { _ = conn.Close() }()
	if err := locker.SessionLock(ctx, conn); err != nil {
		return fmt.Errorf("migrate: lock: %w", Classify(err))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		err = errors.Join(err, locker.SessionUnlock(ctx, conn))
	}()
	return fn()
}

// ownProvider is goose over our own migrations.
func ownProvider(sqlDB *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, sqlDB, migrations.Files, goose.WithDisableGlobalRegistry(true))
}

func migrateOwn(ctx context.Context, sqlDB *sql.DB, log *slog.Logger) (applied int, err error) {
	provider, err := ownProvider(sqlDB)
	if err != nil {
		return 0, err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		log.InfoContext(ctx, "migration applied", "source", SourceOwn, "version", r.Source.Version,
			"file", r.Source.Path, "took_ms", r.Duration.Milliseconds())
	}
	return len(results), err
}

func riverMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
}

func migrateRiver(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (applied int, err error) {
	migrator, err := riverMigrator(pool)
	if err != nil {
		return 0, err
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return 0, err
	}
	for _, v := range result.Versions {
		log.InfoContext(ctx, "migration applied", "source", SourceRiver, "version", v.Version,
			"file", v.Name, "took_ms", v.Duration.Milliseconds())
	}
	return len(result.Versions), nil
}
