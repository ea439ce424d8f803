package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is wrong with a configuration, and whoever complains about it, no password gets out: not in what is printed, not in
// errors that hold an address, not in the log.
func TestNoSecretGetsOut(t *testing.T) {
	t.Parallel()
	const secret, escaped = "h!dd3n", "h%21dd3n"
	away := []string{
		"MSGX_PG_DSN=postgres://me:" + escaped + "@127.0.0.1:1/none?connect_timeout=1", "MSGX_MAILBOX_DSN=me:" + secret + "@tcp(127.0.0.1:1)/none?timeout=1s",
		"MSGX_KAFKA_BROKERS=127.0.0.1:1", "MSGX_KAFKA_SASL_MECHANISM=PLAIN", "MSGX_KAFKA_SASL_USER=me", "MSGX_KAFKA_SASL_PASSWORD=" + secret,
		"MSGX_ADMIN_API_URL=http://127.0.0.1:1/x", "MSGX_ADMIN_API_TOKEN=" + secret, "MSGX_HTTP_ADDR=127.0.0.1:0",
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("pg:\n  dsn: [1, 'postgres://me:"+escaped+"@x/y']\nmailbox:\n  dsn: {a: '"+secret+"'}\nkafka: "+secret+"\n"), 0o600))
	torn := filepath.Join(t.TempDir(), "torn.yaml")
	require.NoError(t, os.WriteFile(torn, []byte("pg:\n  dsn: 'postgres://me:"+secret+"@x/y\n\t- "+secret+"\n"), 0o600))
	commands := [][]string{
		{"serve", "--print-config"},
		{"migrate", "up"},
		{"migrate", "status"},
		{"doctor"},
		{"doctor", "--json"},
		{"replay", "--ids", "1", "--reason", "x"},
		{"simulate", "--count", "1"},
	}
	for name, c := range map[string]struct {
		environ  []string
		commands [][]string
	}{
		"everything is away": {away, commands},
		"no URL":             {append(away, "MSGX_PG_DSN=postgres://me:"+secret+"@127.0.0.1:port/none", "MSGX_MAILBOX_DSN=me:"+secret+"@tcp(127.0.0.1:1"), append(commands, []string{"serve"})},
		"no pairs":           {append(away, "MSGX_PG_DSN=host=127.0.0.1 password="+secret+" port=x", "MSGX_MAILBOX_DSN="+secret), append(commands, []string{"serve"})},
		"no such key":        {append(away, "MSGX_PG_PASSWORD="+secret, "MSGX_KAFKA_SASL_MECHANISM="+"none"), append(commands, []string{"serve"})},
		"odd file":           {nil, [][]string{{"serve", "--config", file}, {"serve", "--config", file, "--print-config"}, {"serve", "--config", torn}, {"migrate", "up", "--config", file}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range c.commands {
				got := program(t, c.environ, "", args...)
				require.NotEmpty(t, got.out+got.errors, args)
				require.NotContains(t, got.out+got.errors, secret, args)
				require.NotContains(t, got.out+got.errors, escaped, args)
			}
		})
	}
}
