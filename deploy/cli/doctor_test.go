package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"msgexchange/db/dbtest"
)

// around is the configuration of a system whose broker answers.
func around(t *testing.T, options ...kfake.Opt) []string {
	t.Helper()
	kafka, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(3, "msg", "schd"))...)
	require.NoError(t, err)
	t.Cleanup(kafka.Close)
	return []string{
		"MSGX_PG_DSN=" + dbtest.DSN(t), "MSGX_MAILBOX_DSN=" + dbtest.Mailbox(t), "MSGX_KAFKA_BROKERS=" + kafka.ListenAddrs()[0],
		"MSGX_HTTP_ADDR=127.0.0.1:0", "MSGX_LOG_FORMAT=text",
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	environ := around(t)
	got := program(t, environ, "", "doctor")
	require.Zero(t, got.code, got.out+got.errors)
	require.Contains(t, got.out, "postgres schema")
	require.Contains(t, got.out, "every partition has a leader")
	require.Empty(t, got.errors)

	got = program(t, append(environ, "MSGX_KAFKA_BROKERS=127.0.0.1:1", "MSGX_PG_DSN=postgres://me:hidden@127.0.0.1:1/none"), "", "doctor", "--json")
	require.Equal(t, 1, got.code)
	require.NotContains(t, got.out+got.errors, "hidden")
	var findings []struct{ Check, Verdict, Found, Do string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &findings))
	require.Equal(t, "FAIL", findings[0].Verdict)
	require.NotEmpty(t, findings[0].Do)
}

// A start that would do harm is refused and says why; what is only away is not harm (contract §8.9).
func TestServeRefusesHarm(t *testing.T) {
	t.Parallel()
	t.Run("old broker", func(t *testing.T) {
		t.Parallel()
		got := program(t, around(t, kfake.MaxVersions(kversion.V0_10_0())), "", "serve")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.errors, "InitProducerId")
	})
	t.Run("shadow on a live database", func(t *testing.T) {
		t.Parallel()
		environ := append(around(t), "MSGX_KAFKA_CREATE_TOPICS=true")
		require.Zero(t, program(t, environ, "", "serve", "--until-idle", "200ms").code)
		got := program(t, append(environ, "MSGX_MODE=shadow"), "", "serve")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.errors, "other mode")
	})
	t.Run("another mailbox", func(t *testing.T) {
		t.Parallel()
		environ := around(t)
		require.Zero(t, program(t, environ, "", "serve", "--until-idle", "200ms").code)
		environ = append(environ, "MSGX_MAILBOX_DSN="+dbtest.Mailbox(t))
		got := program(t, environ, "", "serve")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.errors, "mailbox.identity=")
		got = program(t, environ, "", "doctor")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.out, "REFUSE")
	})
	t.Run("a pooler's zone", func(t *testing.T) {
		t.Parallel()
		environ := around(t)
		got := program(t, append(environ, environ[0]+"&TimeZone=Asia/Tokyo"), "", "serve")
		require.Equal(t, 1, got.code)
		require.Contains(t, got.errors, "Asia/Tokyo")
	})
}
