package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"msgexchange/db/dbserver"
	"msgexchange/deploy/simulator"
	"msgexchange/deploy/systemtest/rig"
)

// bench is the world under measurement. Its servers are as durable as in production; the program is the real one, in a
// process of its own.
type bench struct {
	options
	world *rig.World
	table table
	seqn  int
	start time.Time
}

// open starts the servers.
func open(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, start: time.Now()}
	settings := map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "random_page_cost": "1.1",
	}
	if o.statements {
		countStatements(settings)
	}
	var err error
	b.world, err = rig.NewWorld(ctx, rig.Needs{
		Program: o.program, Partitions: partitions, Topics: []string{copyTopic, eventsTopic},
		PG:      dbserver.Options{Durable: true, Settings: settings},
		MariaDB: dbserver.Options{Durable: true, Settings: map[string]string{"innodb-buffer-pool-size": "256M"}},
	})
	return b, err
}

// partitions of each topic.
const partitions = 6

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(b.start).Seconds(), fmt.Sprintf(format, args...))
}

// with runs f beside a pod with more settings over the defaults, and ends the pod in order.
func (b *bench) with(ctx context.Context, f func(pod *rig.Pod) error, env ...string) (err error) {
	return b.withRoles(ctx, "all", f, env...)
}

// withRoles runs f beside a pod that has some of the roles only.
func (b *bench) withRoles(ctx context.Context, roles string, f func(pod *rig.Pod) error, env ...string) (err error) {
	env = append(append(b.world.Env(), "MSGX_PG_DSN="+b.world.PGDSN, "MSGX_MAILBOX_DSN="+b.world.MailboxDSN), env...)
	pod, err := rig.Start(ctx, "bench", b.world.Program, []string{"serve", "--roles", roles}, env)
	if err != nil {
		return err
	}
	defer func() {
		defer pod.Kill()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, pod.Log.Tail(20))
		}
		if pod.Signal(syscall.SIGTERM) == nil {
			_, late := pod.Exit(30 * time.Second)
			err = errors.Join(err, late)
		}
	}()
	if err := b.until(ctx, 30*time.Second, func() (bool, error) { _, ok := pod.Address(); return ok, nil }); err != nil {
		return fmt.Errorf("the pod does not come up: %w", err)
	}
	return f(pod)
}

// until asks again and again.
func (b *bench) until(ctx context.Context, within time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drained waits until every row of the mailbox is finished and marked and every event is sent. It asks for what indexes know, so
// that asking costs next to nothing.
func (b *bench) drained(ctx context.Context) error {
	const open = `SELECT (SELECT committed_up_to FROM inbox_cursor) >= $1
		AND NOT EXISTS (SELECT 1 FROM proc_state WHERE state IN ('PENDING', 'FAILED'))
		AND NOT EXISTS (SELECT 1 FROM proc_state WHERE backfill_next_at IS NOT NULL AND backfill_abandoned_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM event_span WHERE state = 'PENDING')`
	last, err := b.lastID(ctx)
	if err != nil {
		return err
	}
	return b.until(ctx, 10*time.Minute, func() (ok bool, err error) {
		err = b.world.Pool.QueryRow(ctx, open, last).Scan(&ok)
		return ok, err
	})
}

// lastID is the newest row of the mailbox.
func (b *bench) lastID(ctx context.Context) (id int64, err error) {
	err = b.world.Mailbox.DB().QueryRowContext(ctx, "SELECT coalesce(max(CMINMSGS_ID), 0) FROM cminmsgs").Scan(&id)
	return id, err
}

// put writes messages into the mailbox in one transaction and gives the moment of its commit.
func (b *bench) put(ctx context.Context, texts ...string) (at time.Time, err error) {
	tx, err := b.world.Mailbox.DB().BeginTx(ctx, nil)
	if err != nil {
		return at, err
	}
	defer func() { _ = tx.Rollback() }()
	const insert = "INSERT INTO cminmsgs (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS) VALUES "
	now := time.Now().In(b.world.Zone).Format(time.DateTime)
	const chunk = 500
	for len(texts) > 0 {
		n := min(chunk, len(texts))
		args := make([]any, 0, 2*n)
		for _, t := range texts[:n] {
			args = append(args, t, now)
		}
		if _, err := tx.ExecContext(ctx, insert+strings.TrimSuffix(strings.Repeat("(?,?,'VALID'),", n), ","), args...); err != nil {
			return at, err
		}
		texts = texts[n:]
	}
	err = tx.Commit()
	return time.Now(), err
}

// records counts what a topic has.
func (b *bench) records(topic string) (n int) {
	for _, p := range b.world.Broker.PartitionInfos(topic) {
		n += int(p.HighWatermark)
	}
	return n
}

// day writes a whole schedule; days of different seeds have other flights.
func (b *bench) day(seed uint64, flights int) (simulator.Message, error) {
	g, err := simulator.New(simulator.Options{Seed: seed, Flights: flights, Day: time.Now(), Zone: b.world.Zone})
	if err != nil {
		return simulator.Message{}, err
	}
	return g.Next(), nil
}

// memory gives a number of /proc/PID/status in MB: VmRSS, or VmHWM for the highest there was.
func memory(pod *rig.Pod, name string) (mb float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pod.PID()))
	if err != nil {
		return 0, err
	}
	for l := range bytes.Lines(text) {
		fields := strings.Fields(string(l))
		if len(fields) > 1 && fields[0] == name+":" {
			kb, err := strconv.ParseFloat(fields[1], 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc", name)
}

// pgbench runs PostgreSQL's own benchmark against our server, one client and the short transaction, and gives its rate.
func (b *bench) pgbench(ctx context.Context, seconds int) (tps float64, err error) {
	args := []string{"-N", "-n", "-c", "1", "-T", strconv.Itoa(seconds)}
	out, err := b.tool(ctx, args...)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(out, "\ntps = ")
	if !found {
		return 0, fmt.Errorf("pgbench: no tps in %q", out)
	}
	number, _, _ := strings.Cut(rest, " ")
	return strconv.ParseFloat(number, 64)
}

func (b *bench) tool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.world.PG.BinDir, "pgbench"), append(args, b.world.PGDSN)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return string(out), nil
}
