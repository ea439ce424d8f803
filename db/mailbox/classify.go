package mailbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"msgexchange/jobs/fault"
)

// ErrTooLarge says that the mailbox does not accept a text of that size.
var ErrTooLarge = errors.New("the mailbox does not accept a text of this size")

// classify puts an error of the mailbox into its class, by number and type, never by text. Contexts that ended stay as
// they are when cancelled, and are an outage when their time was up.
func classify(op string, err error) error {
	if err == nil {
		return nil
	}
	var (
		fe *fault.Error
		me *mysql.MySQLError
	)
	switch {
	case errors.As(err, &fe):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("mailbox: %s: %w", op, err)
	case errors.Is(err, mysql.ErrPktTooLarge):
		return &fault.Error{Class: fault.Infra, Op: "mailbox: " + op, Err: errors.Join(ErrTooLarge, err)}
	case errors.As(err, &me):
		return &fault.Error{Class: classOf(me.Number), Op: "mailbox: " + op, Err: meaning(me)}
	}
	return &fault.Error{Class: fault.Outage, Op: "mailbox: " + op, Err: err} // the way to it
}

func meaning(me *mysql.MySQLError) error {
	switch me.Number {
	case errDataTooLong, errPacketTooLarge:
		return errors.Join(ErrTooLarge, me)
	case errNeedsRight:
		return errors.Join(ErrNoProcessRight, me)
	}
	return me
}

// classOf tells refusals that concern everybody from those of one statement, by the numbers of MySQL's and MariaDB's
// lists.
func classOf(number uint16) fault.Class {
	switch number {
	case 1021, 1037, 1041, 1114, // disk full, out of memory, out of resources, table full
		1040, 1129, 1130, 1203, 1226, // too many connections, host blocked, host not allowed, user's limits
		1044, 1045, 1142, 1143, 1820, 1862, // rights and passwords
		1046, 1049, 1054, 1146, // no schema, no such schema, column, table: a wrong deployment, never a message
		1053, 1317, 1927, 1969, 3024, 3032, 3169, 4031, // shutting down, interrupted, killed, timed out, offline
		1290, 1792, 1836: // read only: a demoted primary
		return fault.Outage
	}
	return fault.Infra
}

// Numbers that have a meaning of their own.
const (
	errSyntax         = 1064
	errPacketTooLarge = 1153
	errNeedsRight     = 1227
	errDataTooLong    = 1406
)
