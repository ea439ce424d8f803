// Package mailbox is the shared MySQL mailbox, which belongs to others: we read rows of CMINMSGS and set their processed
// mark, append rows where our HTTP endpoint receives messages, and append requests to COUTMSGS (design §4, §8, §9;
// dictionary 1). It never deletes, never overwrites a mark, never creates or alters a table.
//
// Times in the mailbox are DATETIMEs without a zone; the configured zone gives them their meaning. Dates are read as text
// and parsed here: what is no date becomes "unknown" and never an error (K16).
package mailbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Config of the mailbox (mailbox.* in the contract).
type Config struct {
	// DSN in the form of go-sql-driver; its own parseTime, loc, charset and time_zone are overruled.
	DSN string
	// Zone gives the mailbox's DATETIMEs their meaning.
	Zone *time.Location
	// TableIn and TableOut are found without regard to case. Empty: CMINMSGS, COUTMSGS.
	TableIn, TableOut string
	// MaxTextBytes is the largest text that is loaded; larger ones are only told. 0: 10 MiB.
	MaxTextBytes int
	// Recognise is asked once the server answers, before anything is done with it. nil: every mailbox will do.
	Recognise Recognise
}

// The mailbox's own names, and the largest message there may be (dictionary 1, 4).
const (
	tableIn      = "CMINMSGS"
	tableOut     = "COUTMSGS"
	maxTextBytes = 10 << 20
)

// maxConns is all the shared server is asked to hold for one process: poller, marks, requests, HTTP.
const maxConns = 4

// Deadlines towards the mailbox. A connection lives shorter than any sensible wait_timeout (K15).
const (
	dialTimeout  = 5 * time.Second
	ioTimeout    = 30 * time.Second
	connLifetime = 60 * time.Second
	connIdleTime = 30 * time.Second
)

// Mailbox is a pool of connections. Safe for concurrent use. Every method classifies its errors: fault.Outage when the
// mailbox was away or nobody may work with it, fault.Infra when it refused this one statement.
type Mailbox struct {
	db      *sql.DB
	zone    *time.Location
	names   names
	maxText int

	recognise Recognise
	noSkip    atomic.Bool // the server knows no SKIP LOCKED
}

// Open prepares the pool; it connects when first used, so that a process starts while the mailbox is away.
func Open(c Config) (*Mailbox, error) {
	cfg, err := driverConfig(c.DSN, c.Zone)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errNotDSN
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxLifetime(connLifetime)
	db.SetConnMaxIdleTime(connIdleTime)
	return &Mailbox{
		db: db, zone: c.Zone, recognise: c.Recognise, maxText: cmp.Or(c.MaxTextBytes, maxTextBytes),
		names: names{in: cmp.Or(c.TableIn, tableIn), out: cmp.Or(c.TableOut, tableOut)},
	}, nil
}

// errNotDSN never carries the text: it has the password in it.
var errNotDSN = errors.New("mailbox.dsn: want user:password@tcp(host:port)/schema")

// lockWait bounds how long we wait for a row's lock, in seconds, unless the DSN says otherwise.
const lockWait = "innodb_lock_wait_timeout"

// driverConfig is the DSN with everything stated that we rely on.
func driverConfig(dsn string, zone *time.Location) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil || cfg.DBName == "" {
		return nil, errNotDSN
	}
	cfg.ParseTime = true
	cfg.Loc = zone
	cfg.ClientFoundRows = true
	cfg.RejectReadOnly = true // a demoted primary: drop the connection and find the new one (K15)
	cfg.InterpolateParams = true
	cfg.MultiStatements = false
	cfg.Logger = &mysql.NopLogger{} // what it has to say comes back as errors too
	cfg.MaxAllowedPacket = 0        // ask the server, so that too large a text is refused here and the connection lives on
	cfg.Timeout = cmp.Or(cfg.Timeout, dialTimeout)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, ioTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, ioTimeout)
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("mailbox.dsn: charset: %w", err)
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	delete(cfg.Params, "charset")
	if cfg.Params[lockWait] == "" {
		cfg.Params[lockWait] = "1" // a row that somebody holds must not hold the others up
	}
	cfg.Params["time_zone"] = "'" + time.Now().In(zone).Format("-07:00") + "'"
	return cfg, nil
}

// Close closes the pool.
func (m *Mailbox) Close() error { return m.db.Close() }

// DB is the pool itself, for its statistics and for doctor.
func (m *Mailbox) DB() *sql.DB { return m.db }

// Ping says whether the mailbox answers and its tables are there.
func (m *Mailbox) Ping(ctx context.Context) error {
	if err := m.db.PingContext(ctx); err != nil {
		return classify("ping", err)
	}
	_, err := m.tables(ctx)
	return err
}
