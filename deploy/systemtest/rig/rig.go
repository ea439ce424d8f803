// Package rig is what system tests, the soak and the benchmark stand on: pods of the real binary as processes, the broker in
// process, and doors between them that can be cut and frozen. It knows nothing of what is tested; its users bring the
// database and the mailbox. Nothing of the product imports it.
package rig

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// Build builds the program into dir, with the fault hooks of contract §8.21, and gives its path.
func Build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "msgexchange")
	out, err := exec.CommandContext(ctx, "go", "build", "-tags", "faults", "-o", path, "msgexchange").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// Doors are the way of one pod, or of several, to the database and the mailbox.
type Doors struct {
	PG, Mailbox *Proxy

	pgDSN, mailboxDSN string // through the doors
}

// OpenDoors puts a door before each of the two servers named by the DSNs: a URL, and one of go-sql-driver.
func OpenDoors(ctx context.Context, pgDSN, mailboxDSN string) (*Doors, error) {
	pg, err := pgx.ParseConfig(pgDSN)
	if err != nil {
		return nil, err
	}
	mb, err := mysql.ParseDSN(mailboxDSN)
	if err != nil {
		return nil, err
	}
	d := &Doors{}
	address := net.JoinHostPort(pg.Host, fmt.Sprint(pg.Port))
	if d.PG, err = OpenProxy(ctx, address); err != nil {
		return nil, err
	}
	if d.Mailbox, err = OpenProxy(ctx, mb.Addr); err != nil {
		d.PG.Close()
		return nil, err
	}
	mb.Addr = d.Mailbox.Addr
	d.pgDSN, d.mailboxDSN = strings.Replace(pgDSN, address, d.PG.Addr, 1), mb.FormatDSN()
	return d, nil
}

// Env is the part of a pod's configuration that leads it through the doors.
func (d *Doors) Env() []string {
	return []string{"MSGX_PG_DSN=" + d.pgDSN, "MSGX_MAILBOX_DSN=" + d.mailboxDSN}
}

// Close cuts everything and opens no more.
func (d *Doors) Close() {
	d.PG.Close()
	d.Mailbox.Close()
}
