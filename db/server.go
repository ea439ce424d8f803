package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// minServerVersion is PostgreSQL 14.0, as server_version_num spells it.
const minServerVersion = 140000

// What CheckServer may find wrong.
var (
	ErrOldServer = errors.New("PostgreSQL 14 or newer is needed")
	ErrPooler    = errors.New("there is a connection pooler before PostgreSQL; connect to the server itself: notifications and session settings do not pass a pooler")
)

// unreached says why a connection could not be made. A protocol violation is a pooler's refusal of our session settings:
// PostgreSQL knows them all.
func unreached(op string, err error) error {
	const protocolViolation = "08P01"
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == protocolViolation {
		return fmt.Errorf("%s: %w (%w)", op, ErrPooler, err)
	}
	return fmt.Errorf("%s: %w", op, Classify(err))
}

// CheckServer proves that the server behind pool is one we can work on: new enough (ErrOldServer) and reached directly
// (ErrPooler, K07). It gives the server's version as text.
func CheckServer(ctx context.Context, pool *pgxpool.Pool) (version string, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return "", unreached("check postgres", err)
	}
	defer conn.Release()

	var number string
	var pid uint32
	const query = `SELECT current_setting('server_version'), current_setting('server_version_num'), pg_backend_pid()`
	// Simple protocol: a pooler may hand us a session in which somebody else prepared our statement.
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&version, &number, &pid); err != nil {
		return "", fmt.Errorf("check postgres: %w", Classify(err))
	}
	if n, err := strconv.Atoi(number); err != nil || n < minServerVersion {
		return version, fmt.Errorf("check postgres: version %s: %w", version, ErrOldServer)
	}
	// A pooler hands out cancel keys of its own, so the process id of the handshake is not the server's.
	if conn.Conn().PgConn().PID() != pid {
		return version, fmt.Errorf("check postgres: %w", ErrPooler)
	}
	return version, nil
}
