package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// Logstash is a TCP input that gets the log too; keys under "logstash.".
type Logstash struct {
	// Addr is the input, host:port, with the codec json_lines; empty: none. What is logged stays on standard error as well.
	Addr string `koanf:"addr"`
	// Queue is how many records may wait for it; more are dropped and counted, nobody waits. 1 … 100000.
	Queue int `koanf:"queue"`
}

func defaultLogstash() Logstash { return Logstash{Queue: 4096} }

// Validate finds everything wrong with the settings.
func (l Logstash) Validate() error {
	var addr error
	if _, _, err := net.SplitHostPort(l.Addr); l.Addr != "" && err != nil {
		addr = fmt.Errorf("addr: %q is not host:port", l.Addr)
	}
	const most = 100_000
	return errors.Join(addr, within("queue", l.Queue, 1, most))
}

// Eureka is where the service is registered for neighbours to find; keys under "eureka.".
type Eureka struct {
	// URLs are the servers, as http://host:8761/eureka; empty: no registration. The first that answers is asked.
	URLs []string `koanf:"urls" secret:"true"`
	// Host is the name or address at which others reach this pod; empty: its own address on the way to the server.
	Host string `koanf:"host"`
	// Port is the port at which others reach this pod; 0: that of http.addr.
	Port int `koanf:"port"`
	// RenewInterval is the time between heartbeats; who misses three is forgotten. 1s … 5m.
	RenewInterval time.Duration `koanf:"renew-interval"`
}

func defaultEureka() Eureka { return Eureka{RenewInterval: 30 * time.Second} }

// Validate finds everything wrong with the settings.
func (e Eureka) Validate() error {
	const lastPort = 65_535
	errs := []error{within("port", e.Port, 0, lastPort), within("renew-interval", e.RenewInterval, time.Second, 5*time.Minute)}
	for i, text := range e.URLs {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("urls: the address %d is not of the form http://host:port/path", i+1)) // it may hold a password
		}
	}
	return errors.Join(errs...)
}
