package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Config of the HTTP server; keys under "http.".
type Config struct {
	// Addr is where to listen, host:port. Default ":8080".
	Addr string `koanf:"addr"`
	// TrustedCIDRs are the networks whose callers read and send without a token. Default: loopback and the private ranges of
	// RFC 1918 and RFC 4193.
	TrustedCIDRs []netip.Prefix `koanf:"trusted-cidrs"`
	// TrustedProxies are the networks of proxies: their X-Forwarded-For counts. Default: none.
	TrustedProxies []netip.Prefix `koanf:"trusted-proxies"`
	// TokensFile holds one "token name role" a line, role reader, sender or operator; read again when it changes.
	// Default: none, and then nobody is an operator.
	TokensFile string `koanf:"tokens-file"`
	// MaxBody is the largest request body, 1KiB … 64MiB. Default 10MiB.
	MaxBody Size `koanf:"max-body"`
	// RateLimit is how many requests a second one caller may make in the long run; 0 turns the limit off. Default 1000.
	RateLimit float64 `koanf:"rate-limit"`
	// RateBurst is how many requests a caller may make at once, at least 1. Default 2000.
	RateBurst int `koanf:"rate-burst"`
	// ReadHeaderTimeout ends connections whose request does not begin to make sense, 1s … 1m. Default 5s.
	ReadHeaderTimeout time.Duration `koanf:"read-header-timeout"`
	// ReadTimeout bounds reading a whole request, 1s … 10m. Default 30s.
	ReadTimeout time.Duration `koanf:"read-timeout"`
	// WriteTimeout bounds writing a whole answer, 1s … 10m. Default 2m.
	WriteTimeout time.Duration `koanf:"write-timeout"`
	// IdleTimeout ends kept-alive connections nobody uses, 1s … 10m. Default 2m.
	IdleTimeout time.Duration `koanf:"idle-timeout"`
	// ShutdownTimeout is what requests in flight are given when the process ends, 1s … 10m. Default 10s.
	ShutdownTimeout time.Duration `koanf:"shutdown-timeout"`
}

// Defaults of every key.
func Defaults() Config {
	return Config{
		Addr:              ":8080",
		TrustedCIDRs:      privateRanges(),
		MaxBody:           10 * MiB,
		RateLimit:         1000,
		RateBurst:         2000,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		ShutdownTimeout:   10 * time.Second,
	}
}

func privateRanges() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
}

// Bounds of the keys.
const (
	minBody    = KiB
	maxBody    = 64 * MiB
	minTimeout = time.Second
	maxTimeout = 10 * time.Minute
	maxHeader  = time.Minute
)

// Validate reports every problem at once, by key without the "http.".
func (c Config) Validate() error {
	var problems []error
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		problems = append(problems, fmt.Errorf("addr: %q is not host:port", c.Addr))
	}
	if c.MaxBody < minBody || c.MaxBody > maxBody {
		problems = append(problems, fmt.Errorf("max-body: %s is not within %s and %s", c.MaxBody, minBody, maxBody))
	}
	if c.RateLimit < 0 {
		problems = append(problems, fmt.Errorf("rate-limit: %v is less than 0", c.RateLimit))
	}
	if c.RateBurst < 1 {
		problems = append(problems, fmt.Errorf("rate-burst: %d is less than 1", c.RateBurst))
	}
	for _, t := range []struct {
		key   string
		value time.Duration
		most  time.Duration
	}{
		{"read-header-timeout", c.ReadHeaderTimeout, maxHeader},
		{"read-timeout", c.ReadTimeout, maxTimeout},
		{"write-timeout", c.WriteTimeout, maxTimeout},
		{"idle-timeout", c.IdleTimeout, maxTimeout},
		{"shutdown-timeout", c.ShutdownTimeout, maxTimeout},
	} {
		if t.value < minTimeout || t.value > t.most {
			problems = append(problems, fmt.Errorf("%s: %s is not within %s and %s", t.key, t.value, minTimeout, t.most))
		}
	}
	return errors.Join(problems...)
}
