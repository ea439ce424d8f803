// Package config composes the configuration of every component into one, loads it, checks it and prints it (contract §3).
// The components own their structs; this package owns where values come from: defaults < YAML file < environment. It is the
// only package that is given the environment, and it never lets a secret out.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"msgexchange/db"
	"msgexchange/http/server"
	"msgexchange/jobs/message"
	"msgexchange/workers/kafka"
)

// Mode says how much of the outside world is written to.
type Mode string

// The closed set of modes.
const (
	Live   Mode = "live"   // everything
	Shadow Mode = "shadow" // own PostgreSQL and own topics only: no mark, no request
)

// AllModes lists the modes.
func AllModes() []Mode { return []Mode{Live, Shadow} }

// shadowSuffix and shadowPrefix keep a shadow's name and topics apart from those of the live system, which some sites call so.
const (
	shadowSuffix = "-shadow"
	shadowPrefix = "shadow."
	livePrefix   = "live."
)

// Config is everything that can be set. Durations are written 20ms, 1m30s or 400d, lists with commas, maps as k=v,k=v.
type Config struct {
	// Mode is how much is written to: live (everything), or shadow: own PostgreSQL, topic prefix, no mark and no request.
	Mode Mode `koanf:"mode"`
	// ServiceName is how this system calls itself; in shadow mode it ends in -shadow.
	ServiceName string `koanf:"service-name"`
	// Lane is the name of the mailbox this system reads: one mailbox is one lane.
	Lane string `koanf:"lane"`
	// ShutdownGrace is how long a stopping process may go on finishing what it has in hand. 1s … 10m.
	ShutdownGrace time.Duration `koanf:"shutdown-grace"`

	Log          Log                    `koanf:"log"`
	Logstash     Logstash               `koanf:"logstash"`
	PG           db.Config              `koanf:"pg"`
	Mailbox      Mailbox                `koanf:"mailbox"`
	Kafka        kafka.Config           `koanf:"kafka"`
	HTTP         server.Config          `koanf:"http"`
	OperationDay OperationDay           `koanf:"operation-day"`
	Flight       Flight                 `koanf:"flight"`
	Pipeline     Pipeline               `koanf:"pipeline"`
	Identity     message.IdentityPolicy `koanf:"identity"`
	Ignore       Ignore                 `koanf:"ignore"`
	Schd         Schd                   `koanf:"schd"`
	Delivery     Delivery               `koanf:"delivery"`
	Backfill     Backfill               `koanf:"backfill"`
	Request      Request                `koanf:"request"`
	Refdata      Refdata                `koanf:"refdata"`
	AdminAPI     AdminAPI               `koanf:"admin-api"`
	Raw          Raw                    `koanf:"raw"`
	Archive      Archive                `koanf:"archive"`
	History      History                `koanf:"history"`
	Consistency  Consistency            `koanf:"consistency"`
	Audit        Audit                  `koanf:"audit"`
	Eureka       Eureka                 `koanf:"eureka"`
}

// Log is how the process reports; keys under "log.".
type Log struct {
	// Level is the least that is written: debug, info, warn or error.
	Level slog.Level `koanf:"level"`
	// Format is how a record looks: json, or text for people.
	Format string `koanf:"format"`
}

// Defaults is the configuration of which nothing has been set.
func Defaults() Config {
	return Config{
		Mode:          Live,
		ServiceName:   "msgexchangeapi",
		Lane:          "default",
		ShutdownGrace: 25 * time.Second,
		Log:           Log{Level: slog.LevelInfo, Format: "json"},
		Logstash:      defaultLogstash(),
		PG:            db.Defaults(),
		Mailbox:       defaultMailbox(),
		Kafka:         kafka.Defaults(),
		HTTP:          server.Defaults(),
		OperationDay:  defaultOperationDay(),
		Flight:        defaultFlight(),
		Pipeline:      defaultPipeline(),
		Identity:      message.IdentityDefaults(),
		Ignore:        defaultIgnore(),
		Schd:          defaultSchd(),
		Delivery:      defaultDelivery(),
		Backfill:      defaultBackfill(),
		Request:       defaultRequest(),
		Refdata:       Refdata{},
		AdminAPI:      defaultAdminAPI(),
		Raw:           defaultRaw(),
		Archive:       defaultArchive(),
		History:       defaultHistory(),
		Consistency:   defaultConsistency(),
		Audit:         defaultAudit(),
		Eureka:        defaultEureka(),
	}
}

// Validate finds what is wrong with the settings that belong to no component.
func (c Config) Validate() error {
	return errors.Join(
		oneOf("mode", c.Mode, AllModes()...),
		filled("service-name", c.ServiceName),
		filled("lane", c.Lane),
		within("shutdown-grace", c.ShutdownGrace, time.Second, 10*time.Minute),
		c.scheduled(),
	)
}

// scheduled finds schedules of lists that nobody could be asked for.
func (c Config) scheduled() error {
	var errs []error
	for name := range c.Refdata.Schedule {
		list := strings.HasPrefix(name, "RQRD-") && slices.Contains(c.Request.Kinds, name)
		if _, served := c.AdminAPI.Endpoints[name]; !list && !served {
			errs = append(errs, fmt.Errorf("refdata.schedule: %q is neither a list in request.kinds nor one in admin-api.endpoints", name))
		}
	}
	return errors.Join(errs...)
}

// Validate finds what is wrong with the settings of logging.
func (l Log) Validate() error { return oneOf("format", l.Format, "json", "text") }

// unsafe finds settings that are each right and together let a shadow and a live system write over each other.
func (c Config) unsafe() error {
	topics, live := []string{c.Kafka.MsgTopic(), c.Kafka.SchdTopic()}, kafka.Defaults()
	has := func(is func(topic string) bool) bool { return slices.ContainsFunc(topics, is) }
	switch prefix := c.Kafka.TopicPrefix; {
	case c.Mode == Shadow && prefix == "":
		return errors.New("kafka.topic-prefix: empty in shadow mode, which would write to the live topics")
	case c.Mode == Shadow && strings.HasPrefix(strings.ToLower(prefix), livePrefix):
		return fmt.Errorf("kafka.topic-prefix: %q in shadow mode is a live system's", prefix)
	case c.Mode == Shadow && has(func(t string) bool { return t == live.TopicMsg || t == live.TopicSchd }):
		return fmt.Errorf("kafka.topic-prefix: with it shadow mode would write to %s, of which one is the live system's", strings.Join(topics, " and "))
	case c.Mode == Live && has(func(t string) bool { return strings.HasPrefix(t, shadowPrefix) }):
		return fmt.Errorf("kafka.topic-prefix: with it live mode would write to %s, of which one is the shadow's", strings.Join(topics, " and "))
	}
	return nil
}

// settle fills in what follows from other settings; set tells which keys were given.
func (c *Config) settle(set func(name string) bool) {
	if r := &c.Pipeline.Policy; r.UnsupportedAttempts == 0 {
		r.UnsupportedAttempts = r.MaxAttempts
	}
	if c.Mode != Shadow {
		return
	}
	c.ServiceName = strings.TrimSuffix(c.ServiceName, shadowSuffix) + shadowSuffix
	if !set("kafka.topic-prefix") {
		c.Kafka.TopicPrefix = shadowPrefix
	}
}
