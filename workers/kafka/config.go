package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"msgexchange/jobs/outbox"
)

// Config of the connection to Kafka; keys under "kafka.".
type Config struct {
	// Brokers are the addresses asked first, host:port. Required.
	Brokers []string `koanf:"brokers"`
	// TopicMsg receives every change. Default msg.
	TopicMsg string `koanf:"topic-msg"`
	// TopicSchd receives the newest state of each flight. Default schd.
	TopicSchd string `koanf:"topic-schd"`
	// TopicPrefix is put before both names. Default empty; "shadow." in shadow mode.
	TopicPrefix string `koanf:"topic-prefix"`
	// RenamedFrom allows the lane to go on under other topic names: set it to what the refused start prints, the names before. Never
	// needed otherwise.
	RenamedFrom string `koanf:"renamed-from"`
	// MsgKey is the key of msg records: flid, or sndr for consumers of the replaced system. Default flid.
	MsgKey outbox.MsgKey `koanf:"msg-key"`
	// CreateTopics makes missing topics, that of states with cleanup.policy=compact. Default false.
	CreateTopics bool `koanf:"create-topics"`
	// Partitions is how many a topic made by us gets, from 1. Default 6.
	Partitions int32 `koanf:"partitions"`
	// Replication is how many copies a topic made by us gets, from 1; -1 takes the broker's default. Default -1.
	Replication int16 `koanf:"replication"`
	// RequestTimeout bounds one request to a broker, connecting included. 100ms … 1m. Default 3s.
	RequestTimeout time.Duration `koanf:"request-timeout"`
	// SendTimeout bounds the sending of one batch with all its repetitions. From request-timeout to 5m. Default 7s: less than
	// a worker may be silent before another takes over, so that one that was stopped has no time left when it goes on.
	SendTimeout time.Duration `koanf:"send-timeout"`
	TLS         TLS           `koanf:"tls"`
	SASL        SASL          `koanf:"sasl"`
}

// TLS of the connection; keys under "kafka.tls.".
type TLS struct {
	// Enabled switches TLS on. Default false.
	Enabled bool `koanf:"enabled"`
	// CAFile is a PEM file of accepted authorities. Default: the system's.
	CAFile string `koanf:"ca-file"`
	// CertFile is our certificate for mutual TLS, in PEM; together with key-file or not at all.
	CertFile string `koanf:"cert-file"`
	// KeyFile is the key of our certificate, in PEM.
	KeyFile string `koanf:"key-file"`
	// ServerName is expected in the broker's certificate. Default: the host in its address.
	ServerName string `koanf:"server-name"`
}

// SASL of the connection; keys under "kafka.sasl.".
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty means no SASL.
	Mechanism string `koanf:"mechanism"`
	// User is whom we log in as.
	User string `koanf:"user"`
	// Password is the user's.
	Password string `koanf:"password" secret:"true"`
}

// Defaults is the configuration when nothing is said; Brokers must be added.
func Defaults() Config {
	return Config{
		TopicMsg: "msg", TopicSchd: "schd", MsgKey: outbox.ByFLID,
		Partitions: 6, Replication: -1,
		RequestTimeout: 3 * time.Second, SendTimeout: 7 * time.Second,
	}
}

// MsgTopic is the full name of the topic of changes.
func (c Config) MsgTopic() string { return c.TopicPrefix + c.TopicMsg }

// SchdTopic is the full name of the topic of states.
func (c Config) SchdTopic() string { return c.TopicPrefix + c.TopicSchd }

// Topics are the full names of both, as a lane remembers them.
func (c Config) Topics() string { return c.MsgTopic() + " " + c.SchdTopic() }

// Validate reports every problem at once. It reads no file; that is New.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("kafka."+format, args...)) }
	if len(c.Brokers) == 0 {
		bad("brokers: at least one host:port is needed")
	}
	for _, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			bad("brokers: %q is not host:port", b)
		}
	}
	for key, topic := range map[string]string{"topic-msg": c.MsgTopic(), "topic-schd": c.SchdTopic()} {
		if !validTopic(topic) {
			bad("%s: %q with its prefix is no topic name: 1 to 249 of A-Z a-z 0-9 . _ -", key, topic)
		}
	}
	if c.TopicMsg == c.TopicSchd {
		bad("topic-msg and topic-schd are both %q", c.TopicMsg)
	}
	if !slices.Contains(outbox.AllMsgKeys(), c.MsgKey) {
		bad("msg-key: %q is none of %v", c.MsgKey, outbox.AllMsgKeys())
	}
	if c.Partitions < 1 {
		bad("partitions: %d is less than 1", c.Partitions)
	}
	if c.Replication != -1 && c.Replication < 1 {
		bad("replication: %d is neither -1 nor 1 or more", c.Replication)
	}
	if c.RequestTimeout < 100*time.Millisecond || c.RequestTimeout > time.Minute {
		bad("request-timeout: %s is outside 100ms … 1m", c.RequestTimeout)
	}
	if c.SendTimeout < c.RequestTimeout || c.SendTimeout > 5*time.Minute {
		bad("send-timeout: %s is outside request-timeout … 5m", c.SendTimeout)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		bad("tls: cert-file and key-file go together")
	}
	switch c.SASL.Mechanism {
	case "":
		if c.SASL.User != "" || c.SASL.Password != "" {
			bad("sasl.mechanism: missing, but a user or password is set")
		}
	case sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512:
		if c.SASL.User == "" || c.SASL.Password == "" {
			bad("sasl: user and password are both needed")
		}
	default:
		bad("sasl.mechanism: %q is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.SASL.Mechanism)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func validTopic(name string) bool {
	const maxTopicBytes = 249
	if name == "" || len(name) > maxTopicBytes || name == "." || name == ".." {
		return false
	}
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(allowed, r) })
}

// clientID is how brokers name us in their logs and quotas.
const clientID = "msgexchange"

// sarama makes the library's configuration. What the order and durability of records rest on is fixed here and is no option.
func (c Config) sarama() (*sarama.Config, error) {
	s := sarama.NewConfig()
	s.ClientID = clientID
	s.Version = sarama.V2_8_0_0
	s.Producer.RequiredAcks = sarama.WaitForAll
	s.Producer.Idempotent = true
	s.Producer.Partitioner = sarama.NewMurmur2Partitioner
	s.Producer.Return.Successes = true
	s.Producer.Timeout = c.RequestTimeout * 4 / 5 // the broker gives up before the connection does, and says so
	s.Net.MaxOpenRequests = 1
	s.Net.DialTimeout, s.Net.ReadTimeout, s.Net.WriteTimeout = c.RequestTimeout, c.RequestTimeout, c.RequestTimeout
	s.Metadata.Full = false // the cluster is shared: ask for our topics only
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.Retry.Max = 1
	s.Metadata.Retry.Backoff = 100 * time.Millisecond
	s.Metadata.Timeout = c.RequestTimeout
	s.Consumer.Return.Errors = true
	if err := c.secure(s); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

func (c Config) secure(s *sarama.Config) error {
	s.Net.SASL.Enable = c.SASL.Mechanism != ""
	s.Net.SASL.Mechanism = sarama.SASLMechanism(c.SASL.Mechanism)
	s.Net.SASL.User, s.Net.SASL.Password = c.SASL.User, c.SASL.Password
	s.Net.SASL.SCRAMClientGeneratorFunc = scramClients(c.SASL.Mechanism)
	if !c.TLS.Enabled {
		return nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLS.ServerName}
	if c.TLS.CAFile != "" {
		pem, err := os.ReadFile(c.TLS.CAFile)
		if err != nil {
			return fmt.Errorf("kafka.tls.ca-file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("kafka.tls.ca-file: no certificate in %s", c.TLS.CAFile)
		}
	}
	if c.TLS.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
		if err != nil {
			return fmt.Errorf("kafka.tls.cert-file, key-file: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	s.Net.TLS.Enable, s.Net.TLS.Config = true, t
	return nil
}
