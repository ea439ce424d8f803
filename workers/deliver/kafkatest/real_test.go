//go:build kafka

package kafkatest_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/outbox"
	"msgexchange/workers/deliver/kafkatest"
	"msgexchange/workers/kafka"
)

// TestRealBroker is make test-kafka: the suite against a broker of 2.8 … 4.x, in topics of its own that it leaves behind.
func TestRealBroker(t *testing.T) {
	brokers := os.Getenv("MSGX_TEST_KAFKA")
	require.NotEmpty(t, brokers, "MSGX_TEST_KAFKA must name a broker, host:port")
	kafkatest.Run(t, func(t *testing.T) kafkatest.Bench {
		t.Helper()
		topic := "msgx-test-" + strings.ToLower(rand.Text())
		cfg := kafka.Defaults()
		cfg.Brokers, cfg.CreateTopics = strings.Split(brokers, ","), true
		p := producer(t, cfg, topic)
		require.NoError(t, p.Check(t.Context()))
		return kafkatest.Bench{
			Kafka: p, TooLarge: tooLarge(),
			Records: func(t *testing.T) map[int32][]outbox.Record { t.Helper(); return consume(t, cfg.Brokers, topic) },
		}
	})
}
