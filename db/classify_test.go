package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbserver"
	"msgexchange/db/dbtest"
	"msgexchange/jobs/fault"
)

func TestClassify_bySQLSTATE(t *testing.T) {
	t.Parallel()
	classes := map[fault.Class][]string{
		fault.Outage: {
			"08000", "08006", "28P01", "42P01", "42501", "42703", "53100", "53200", "53300", "58030", "25006", "25P03", "3D000",
			"55P03", "57P01", "57P02", "57P03", "57P05",
		},
		fault.Infra: {
			"22001", "22021", "22P02", "23502", "23503", "23505", "23514", "25P02", "40001", "40P01", "57014", "P0001", "XX000", "",
		},
	}
	for class, codes := range classes {
		for _, code := range codes {
			err := db.Classify(fmt.Errorf("load: %w", &pgconn.PgError{Code: code, Message: "shutdown of the connection"}))
			require.Equal(t, class, classOf(t, err), code)
		}
	}
	require.Equal(t, fault.Outage, classOf(t, db.Classify(&pgconn.PgError{Code: "XX000", SeverityUnlocalized: "FATAL"})))
}

func TestClassify_otherErrors(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.Outage, classOf(t, db.Classify(io.ErrUnexpectedEOF)))
	require.Equal(t, fault.Outage, classOf(t, db.Classify(fmt.Errorf("wait: %w", context.DeadlineExceeded))))

	require.NoError(t, db.Classify(nil))
	for _, err := range []error{
		context.Canceled, pgx.ErrNoRows, errors.New("connection refused, says a text"),
		fault.New(fault.Protocol, "decide", "connection: %w", io.EOF),
	} {
		require.Equal(t, err, db.Classify(err), "comes back unchanged")
	}
}

func TestClassify_realErrors(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), dbtest.New(t)
	exec := func(statement string) error {
		_, err := pool.Exec(ctx, statement)
		return db.Classify(err)
	}
	require.Equal(t, fault.Infra, classOf(t, exec(`INSERT INTO inbox_cursor (lane) VALUES ('no time')`)))
	require.Equal(t, fault.Infra, classOf(t, exec(`SET statement_timeout = '1ms'; SELECT pg_sleep(1)`)))
	require.Equal(t, fault.Outage, classOf(t, exec(`SELECT pg_terminate_backend(pg_backend_pid())`)))

	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err := pool.Exec(short, `SELECT pg_sleep(1)`)
	require.Equal(t, fault.Outage, classOf(t, db.Classify(err)))

	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, err = pool.Exec(stopped, `SELECT 1`)
	require.ErrorIs(t, db.Classify(err), context.Canceled)
	var fe *fault.Error
	require.NotErrorAs(t, db.Classify(err), &fe, "our own shutdown is no fault")
}

func TestClassify_serverAway(t *testing.T) {
	t.Parallel()
	server, err := dbserver.StartPostgres(t.Context(), dbserver.Options{Settings: map[string]string{"max_connections": "10"}})
	if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	pool := open(t, server.DSN+"&pool_max_conns=4")

	var held []*pgx.Conn
	for err == nil { // until the server has no more
		var c *pgx.Conn
		if c, err = pgx.Connect(t.Context(), server.DSN); err == nil {
			held = append(held, c)
		}
	}
	require.Equal(t, fault.Outage, classOf(t, db.Classify(err)), "too many connections")
	for _, c := range held {
		require.NoError(t, c.Close(t.Context()))
	}

	err = db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		require.NoError(t, server.Kill())
		_, err := tx.Exec(t.Context(), `SELECT 1`)
		return err
	})
	require.Equal(t, fault.Outage, classOf(t, err), "lost in a transaction")
	_, err = pool.Exec(t.Context(), `SELECT 1`)
	require.Equal(t, fault.Outage, classOf(t, db.Classify(err)), "refused")

	require.NoError(t, server.Restart(t.Context()))
	_, err = pool.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err, "the pool finds the server again")
}

// classOf fails unless somebody decided about err.
func classOf(t *testing.T, err error) fault.Class {
	t.Helper()
	var fe *fault.Error
	require.ErrorAs(t, err, &fe)
	return fe.Class
}
