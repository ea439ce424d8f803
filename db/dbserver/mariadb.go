package dbserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// StartMariaDB starts a private MariaDB. It returns ErrNotInstalled when there is none on the machine.
func StartMariaDB(ctx context.Context, opts Options) (*Server, error) {
	binDir, err := find("mariadb-server", []string{"mariadbd"}, []string{
		"usr/sbin",                      // Debian
		"usr/libexec",                   // Red Hat
		"opt/homebrew/opt/mariadb*/bin", // Homebrew on ARM
		"usr/local/opt/mariadb*/bin",    // Homebrew on Intel
		"home/linuxbrew/.linuxbrew/opt/mariadb*/bin",
	})
	if err != nil {
		return nil, err
	}
	return start(ctx, mariadb{}, binDir, opts)
}

// mariadbUser is the administrator that the DSN names; root is left to the socket.
const mariadbUser = "msgx"

type mariadb struct{}

func (mariadb) name() string { return "mariadb" }

// prefix is where the installation begins: /usr for /usr/sbin/mariadbd.
func (mariadb) prefix(s *Server) string { return filepath.Dir(s.BinDir) }

// share holds the error messages and the scripts of the system tables.
func (m mariadb) share(s *Server) (string, error) {
	for _, dir := range []string{"share/mysql", "share/mariadb", "share"} {
		dir = filepath.Join(m.prefix(s), dir)
		if holds(dir, []string{"mariadb_system_tables.sql"}) || holds(dir, []string{"mysql_system_tables.sql"}) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no MariaDB system tables below %s", m.prefix(s))
}

func (m mariadb) init(ctx context.Context, s *Server) error {
	if _, err := m.share(s); err != nil {
		return err
	}
	if err := m.writeInitFile(s); err != nil {
		return err
	}
	installer := filepath.Join(m.prefix(s), "bin", "mariadb-install-db")
	return s.tool(ctx, installer, "--no-defaults", "--basedir="+m.prefix(s), "--datadir="+s.dataDir(),
		"--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve")
}

func (m mariadb) command(s *Server) []string {
	share, _ := m.share(s) // proved by init
	settings := map[string]string{
		"basedir":                 m.prefix(s),
		"lc-messages-dir":         share,
		"datadir":                 s.dataDir(),
		"tmpdir":                  s.dir,
		"socket":                  "mariadb.sock", // below datadir, so that a long path does no harm
		"pid-file":                filepath.Join(s.dir, "mariadb.pid"),
		"init-file":               m.initFile(s),
		"bind-address":            "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"skip-networking":         "0",
		"skip-name-resolve":       "1",
		"character-set-server":    "utf8mb4",
		"max-connections":         "200",
		"max-allowed-packet":      "64M",
		"innodb-buffer-pool-size": "64M",
		"performance-schema":      "0",
	}
	if !s.opts.Durable {
		maps.Copy(settings, map[string]string{"innodb-flush-log-at-trx-commit": "2", "innodb-flush-method": "nosync"})
	}
	maps.Copy(settings, s.opts.Settings)

	argv := []string{filepath.Join(s.BinDir, "mariadbd"), "--no-defaults"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		argv = append(argv, "--"+name+"="+settings[name])
	}
	return argv
}

func (mariadb) initFile(s *Server) string { return filepath.Join(s.dir, "init.sql") }

func (mariadb) dsn(s *Server) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = mariadbUser, s.password, "tcp", s.Addr
	return c.FormatDSN()
}

func (mariadb) ready(ctx context.Context, dsn string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	cfg.Logger = &mysql.NopLogger{} // refused connections are expected here
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(db.PingContext(ctx), db.Close())
}

// MariaDB has no abrupt end but the system's.
func (mariadb) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (mariadb) killSignal() syscall.Signal { return syscall.SIGKILL }

// writeInitFile writes what the server does at each start: make the administrator, password and all.
func (m mariadb) writeInitFile(s *Server) error {
	text := fmt.Sprintf("CREATE OR REPLACE USER '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", mariadbUser, s.password)
	if err := os.WriteFile(m.initFile(s), []byte(text), 0o600); err != nil {
		return err
	}
	return s.give(m.initFile(s))
}
