//go:build kafka

package kafkatest_test

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/kafka"
)

// TestRealBroker is make test-kafka: the suite against brokers of Apache Kafka. MSGX_TEST_KAFKA names running ones, whose
// topics msgx-test-* stay there; else each version of MSGX_TEST_KAFKA_HOMES is started, and troubled, here.
func TestRealBroker(t *testing.T) {
	if addrs := os.Getenv("MSGX_TEST_KAFKA"); addrs != "" {
		brokers := strings.Split(addrs, ",")
		say(t, "the brokers at %s answer like Kafka %s", addrs, guess(t, brokers))
		kafkatest.Run(t, func(t *testing.T) kafkatest.Bench { t.Helper(); return bench(t, brokers) })
		return
	}
	versions, folders := homes(t)
	require.NotEmpty(t, versions, "neither MSGX_TEST_KAFKA nor MSGX_TEST_KAFKA_HOMES is set")
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := startServer(t, version, folders[version])
			brokers := []string{s.Addr}
			say(t, "Apache Kafka %s started; it answers like %s", version, guess(t, brokers))
			t.Run("suite", func(t *testing.T) {
				kafkatest.Run(t, func(t *testing.T) kafkatest.Bench { t.Helper(); return bench(t, brokers) })
			})
			t.Run("K21 keys land where Java puts them", func(t *testing.T) { requireJavasPartitions(t, bench(t, brokers).Kafka.(*kafka.Producer)) })
			t.Run("secured", func(t *testing.T) { secured(t, s) })
			t.Run("partitions are added", func(t *testing.T) { partitionsAdded(t, brokers) })
			t.Run("topic is made anew", func(t *testing.T) { madeAnew(t, brokers) })
			t.Run("readers of docs/examples", func(t *testing.T) { readers(t, s, folders[version]) })
			t.Run("troubled", func(t *testing.T) {
				kafkatest.RunTroubled(t, bench(t, brokers), []kafkatest.Trouble{
					{Name: "restart", Happen: func(t *testing.T) { t.Helper(); s.Stop(t); s.Start(t) }},
					{Name: "kill -9", Happen: func(t *testing.T) { t.Helper(); s.Kill(t); s.Start(t) }},
					{Name: "freeze", Happen: func(t *testing.T) {
						t.Helper()
						s.Freeze(t, true)
						<-time.After(5 * time.Second) // longer than a request may take
						s.Freeze(t, false)
					}},
				})
			})
		})
	}
}

// say prints whether or not the test fails.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	_, _ = fmt.Fprintf(t.Output(), format+"\n", args...)
}

func bench(t *testing.T, brokers []string) kafkatest.Bench {
	t.Helper()
	return benchOf(t, brokers, newTopic())
}

// newTopic is a name that nobody has.
func newTopic() string { return "msgx-test-" + strings.ToLower(rand.Text()) }

func benchOf(t *testing.T, brokers []string, topic string) kafkatest.Bench {
	t.Helper()
	cfg := kafka.Defaults()
	cfg.Brokers, cfg.CreateTopics = brokers, true
	p := producer(t, cfg, topic)
	ready(t, p)
	return kafkatest.Bench{
		Kafka: p, Check: p.Check, TooLarge: tooLarge(),
		Another: func(t *testing.T) deliver.Kafka { t.Helper(); return producer(t, cfg, topic) },
		Records: func(t *testing.T) map[int32][]outbox.Record { t.Helper(); return consume(t, brokers, topic) },
	}
}

// ready waits for brokers that were just started.
func ready(t *testing.T, p *kafka.Producer) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Check(t.Context()) == nil }, time.Minute, 100*time.Millisecond)
}

// guess asks a broker for its versions.
func guess(t *testing.T, brokers []string) string {
	t.Helper()
	r, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), client(t, brokers))
	require.NoError(t, err)
	return kversion.FromApiVersionsResponse(r).VersionGuess()
}

func client(t *testing.T, brokers []string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// secured sends over TLS with each kind of login.
func secured(t *testing.T, s *server) {
	makeScramUser(t, s)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cfg := kafka.Defaults()
			cfg.Brokers, cfg.CreateTopics = []string{s.Secure}, true
			cfg.TLS = kafka.TLS{Enabled: true, CAFile: s.CAFile}
			cfg.SASL = kafka.SASL{Mechanism: mechanism, User: saslUser, Password: saslPassword}
			topic := newTopic()
			p := producer(t, cfg, topic)
			ready(t, p)
			kafkatest.Deliver(t, p, new(kafkatest.Chair).Seat(), kafkatest.Records(1, 100))
			cfg.SASL.Password = "wrong"
			require.Error(t, producer(t, cfg, topic).Check(t.Context()))
		})
	}
}

func makeScramUser(t *testing.T, s *server) {
	t.Helper()
	const iterations = 4096
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha512.New, saslPassword, salt, iterations, sha512.Size)
	require.NoError(t, err)
	user := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	const scramSHA512 = 2
	user.Name, user.Mechanism, user.Iterations, user.Salt, user.SaltedPassword = saslUser, scramSHA512, iterations, salt, salted
	ask := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	ask.Upsertions = append(ask.Upsertions, user)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := ask.RequestWith(ctx, client(t, []string{s.Addr}))
	require.NoError(t, err)
	require.Zero(t, r.Results[0].ErrorCode)
}
