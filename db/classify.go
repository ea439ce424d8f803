package db

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"msgexchange/jobs/fault"
)

// Classify puts an error of PostgreSQL or of the way to it into its class: fault.Outage when the server was away, refused
// us or could not work for anybody, which spends nobody's attempts (design §3); else fault.Infra. Errors that have a class
// keep it. Errors of other origin and context.Canceled come back unchanged.
func Classify(err error) error {
	var fe *fault.Error
	if err == nil || errors.As(err, &fe) {
		return err
	}
	var pe *pgconn.PgError
	switch {
	case connectionTrouble(err):
		return fault.Wrap(fault.Outage, "postgres", err)
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pe):
		return fault.Wrap(classOf(pe), "postgres", err)
	}
	return err
}

// connectionTrouble says that we could not reach the server, lost it, or gave up waiting for it.
func connectionTrouble(err error) bool {
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	if errors.Is(err, context.Canceled) {
		return false
	}
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, pgconn.ErrConnClosed)
}

// classOf decides by severity and SQLSTATE, never by text.
func classOf(e *pgconn.PgError) fault.Class {
	if e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC" {
		return fault.Outage // the session is over
	}
	if outageCode(e.Code) {
		return fault.Outage
	}
	return fault.Infra
}

// outageCode lists the SQLSTATEs that no message can be the cause of.
func outageCode(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", // connection exception
		"28", // not let in
		"42", // schema or rights: our statements are fixed, so a wrong deployment, never a message
		"53", // out of disk, memory or connections
		"58": // system error below PostgreSQL
		return true
	}
	switch code {
	case "25006", // read only: a demoted primary
		"25P03", // idle in transaction too long: we were stopped
		"3D000", // no such database
		"55P03": // somebody else keeps the lock: lock_timeout
		return true
	}
	return strings.HasPrefix(code, "57P") // shutdown, crash, starting up, dropped
}
