package config

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Mailbox is the shared MySQL; keys under "mailbox.".
type Mailbox struct {
	// DSN is the connection string in the form of the Go driver: user:password@tcp(host:3306)/database. Required.
	DSN string `koanf:"dsn" secret:"true"`
	// Zone is the time zone in which the mailbox writes its times.
	Zone string `koanf:"zone"`
	// TableIn is the table we read, found without regard to case.
	TableIn string `koanf:"table-in"`
	// TableOut is the table of our requests, found without regard to case.
	TableOut string `koanf:"table-out"`
	// ProcessedValue is the status written with the mark where the status map names none.
	ProcessedValue string `koanf:"processed-value"`
	// StatusMap is the status by outcome: SUCCESS, SKIPPED, DUPLICATE, DEAD.
	StatusMap map[string]string `koanf:"status-map"`
}

func defaultMailbox() Mailbox {
	return Mailbox{Zone: "Asia/Shanghai", TableIn: "CMINMSGS", TableOut: "COUTMSGS", ProcessedValue: "PROCESSED"}
}

// maxStatusBytes is the room of CMINMSGS_STATUS.
const maxStatusBytes = 20

// Validate finds everything wrong with the settings.
func (m Mailbox) Validate() error {
	errs := []error{
		filled("dsn", m.DSN), zone("zone", m.Zone), filled("table-in", m.TableIn), filled("table-out", m.TableOut),
		filled("processed-value", m.ProcessedValue), within("processed-value", len(m.ProcessedValue), 0, maxStatusBytes),
	}
	for outcome, status := range m.StatusMap {
		errs = append(errs,
			oneOf("status-map", outcome, "SUCCESS", "SKIPPED", "DUPLICATE", "DEAD"),
			within("status-map."+outcome, len(status), 1, maxStatusBytes))
	}
	return errors.Join(errs...)
}

// HTTP is the server; keys under "http.".
type HTTP struct {
	// Addr is where to listen, host:port or :port.
	Addr string `koanf:"addr"`
	// TrustedCIDRs are the networks whose callers need no token to read and send.
	TrustedCIDRs []netip.Prefix `koanf:"trusted-cidrs"`
	// TrustedProxies are the networks whose forwarded headers count; empty: nobody's.
	TrustedProxies []netip.Prefix `koanf:"trusted-proxies"`
	// TokensFile is a file with one "token name role" a line; empty: no tokens.
	TokensFile string `koanf:"tokens-file"`
	// MaxBody is the longest body accepted. 1KiB … 64MiB.
	MaxBody int64 `koanf:"max-body" unit:"bytes"`
	// RateLimit is how many writing calls a second one caller may make; 0: any number.
	RateLimit float64 `koanf:"rate-limit"`
	// RateBurst is how many of them may come at once.
	RateBurst int `koanf:"rate-burst"`
}

// KiB and MiB count bytes.
const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
)

func defaultHTTP() HTTP {
	private := []string{"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}
	h := HTTP{Addr: ":8080", MaxBody: 10 * MiB, RateLimit: 100, RateBurst: 200}
	for _, network := range private {
		h.TrustedCIDRs = append(h.TrustedCIDRs, netip.MustParsePrefix(network))
	}
	return h
}

// Validate finds everything wrong with the settings.
func (h HTTP) Validate() error {
	errs := []error{
		filled("addr", h.Addr), atLeast("rate-limit", h.RateLimit, 0), atLeast("rate-burst", h.RateBurst, 1),
	}
	if h.MaxBody < KiB || h.MaxBody > 64*MiB {
		errs = append(errs, fmt.Errorf("max-body: %s is not in 1KiB … 64MiB", formatBytes(h.MaxBody)))
	}
	return errors.Join(errs...)
}

// AdminAPI is the neighbour that serves reference data over HTTP; keys under "admin-api.".
type AdminAPI struct {
	// URL is where it is; empty: not used.
	URL string `koanf:"url"`
	// Token is sent as its bearer token; empty: none.
	Token string `koanf:"token" secret:"true"`
	// Timeout is how long one call may take. 1s … 10m.
	Timeout time.Duration `koanf:"timeout"`
	// Schedule is when it is asked, a cron line in operation-day.zone; empty: never by itself.
	Schedule string `koanf:"schedule"`
}

func defaultAdminAPI() AdminAPI { return AdminAPI{Timeout: 30 * time.Second} }

// Validate finds everything wrong with the settings.
func (a AdminAPI) Validate() error {
	var cron error
	if a.Schedule != "" {
		cron = schedule("schedule", a.Schedule)
	}
	return errors.Join(within("timeout", a.Timeout, time.Second, 10*time.Minute), cron)
}
