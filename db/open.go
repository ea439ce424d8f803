package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config of our own PostgreSQL; keys under "pg.".
type Config struct {
	// DSN is a PostgreSQL URL or key=value string of our own database; pool_max_conns in it wins over MaxConns. Required.
	DSN string `koanf:"dsn" secret:"true"`
	// MaxConns is the most connections a pod opens. 4 … 1000. Default 10.
	MaxConns int32 `koanf:"max-conns"`
	// ApplicationName is shown in pg_stat_activity when the DSN names none; set by the process, not by configuration.
	ApplicationName string `koanf:"-"`
}

// Limits of Config.MaxConns: below the smaller one the roles of a pod would wait for each other.
const (
	minMaxConns = 4
	maxMaxConns = 1000
)

// Defaults of everything but the DSN.
func Defaults() Config { return Config{MaxConns: 10} }

// Validate gives all problems of c.
func (c Config) Validate() error {
	var errs []error
	if c.DSN == "" {
		errs = append(errs, errors.New("pg.dsn: required"))
	} else if _, err := pgxpool.ParseConfig(c.DSN); err != nil {
		errs = append(errs, errors.New("pg.dsn: neither a PostgreSQL URL nor a key=value string")) // err may show the password
	}
	if c.MaxConns < minMaxConns || c.MaxConns > maxMaxConns {
		errs = append(errs, fmt.Errorf("pg.max-conns: %d is not within %d and %d", c.MaxConns, minMaxConns, maxMaxConns))
	}
	return errors.Join(errs...)
}

// sessionParams are set on every connection unless the DSN sets them itself. The time-outs bound each wait of ours, and
// how long a stopped process can hold its locks (O4). All our statements are short: parallel workers and compiled
// expressions would cost more than they save.
func sessionParams() map[string]string {
	return map[string]string{
		"statement_timeout":                   "30s",
		"lock_timeout":                        "10s",
		"idle_in_transaction_session_timeout": "5s",
		"max_parallel_workers_per_gather":     "0",
		"jit":                                 "off",
		"TimeZone":                            "UTC",
	}
}

// Open makes a pool and proves that it can reach the server. The caller closes it.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	if c.MaxConns > 0 && !strings.Contains(c.DSN, "pool_max_conns") {
		pc.MaxConns = c.MaxConns
	}
	params := pc.ConnConfig.RuntimeParams
	for name, value := range sessionParams() {
		setDefault(params, name, value)
	}
	setDefault(params, "application_name", c.ApplicationName)

	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreached("open postgres", err)
	}
	return pool, nil
}

// setDefault puts value under name unless a value is there, whatever the case of its name.
func setDefault(params map[string]string, name, value string) {
	for n := range params {
		if strings.EqualFold(n, name) {
			return
		}
	}
	if value != "" {
		params[name] = value
	}
}
