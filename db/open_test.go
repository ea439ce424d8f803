package db_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db"
	"msgexchange/db/dbtest"
)

func open(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	cfg := db.Defaults()
	cfg.DSN, cfg.ApplicationName = dsn, "msgexchange/head/pod-1"
	pool, err := db.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func setting(t *testing.T, pool *pgxpool.Pool, name string) string {
	t.Helper()
	var value string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&value))
	return value
}

func TestOpen_setsLimitsThatTheDSNDoesNotSet(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	pool := open(t, dsn)
	require.Equal(t, "30s", setting(t, pool, "statement_timeout"))
	require.Equal(t, "10s", setting(t, pool, "lock_timeout"))
	require.Equal(t, "5s", setting(t, pool, "idle_in_transaction_session_timeout"))
	require.Equal(t, "UTC", setting(t, pool, "timezone"))
	require.Equal(t, "msgexchange/head/pod-1", setting(t, pool, "application_name"))
	require.Equal(t, int32(10), pool.Config().MaxConns)

	pool = open(t, dsn+"&application_name=mine&statement_timeout=1min&timezone=Asia/Shanghai&pool_max_conns=7")
	require.Equal(t, "1min", setting(t, pool, "statement_timeout"))
	require.Equal(t, "Asia/Shanghai", setting(t, pool, "timezone"))
	require.Equal(t, "mine", setting(t, pool, "application_name"))
	require.Equal(t, int32(7), pool.Config().MaxConns)
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	good := db.Config{DSN: "postgres://u:secret@h/d", MaxConns: 10}
	require.NoError(t, good.Validate())

	bad := db.Config{DSN: "postgres://u:secret@h:port/d", MaxConns: 3}
	err := bad.Validate()
	require.ErrorContains(t, err, "pg.dsn")
	require.ErrorContains(t, err, "pg.max-conns")
	require.NotContains(t, err.Error(), "secret")
	require.ErrorContains(t, db.Defaults().Validate(), "pg.dsn: required")
}

func TestCheckServer(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	version, err := db.CheckServer(t.Context(), open(t, dsn))
	require.NoError(t, err)
	require.NotEmpty(t, version)

	_, err = db.CheckServer(t.Context(), open(t, throughPooler(t, dsn)))
	require.ErrorIs(t, err, db.ErrPooler)
}

// throughPooler puts before the server what every pooler does: it hands out cancel keys of its own.
func throughPooler(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := u.Host
	var g errgroup.Group
	g.Go(func() error {
		for {
			client, err := l.Accept()
			if err != nil {
				return nil
			}
			g.Go(func() error { return relay(client, server) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.NoError(t, g.Wait())
	})
	u.Host = l.Addr().String()
	return u.String()
}

// relay copies both ways, message by message towards the client, and changes the process id in BackendKeyData.
func relay(client net.Conn, server string) error {
	var d net.Dialer
	backend, err := d.DialContext(context.Background(), "tcp", server)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(backend, client)
		_ = backend.Close()
	}()
	defer func() { _ = client.Close() }()
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(backend, header); err != nil {
			return nil
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(backend, body); err != nil {
			return nil
		}
		if header[0] == 'K' {
			body[0] ^= 0x40
		}
		if _, err := client.Write(append(header, body...)); err != nil {
			return nil
		}
	}
}
