package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"msgexchange/deploy/config"
	"msgexchange/http/server"
	"msgexchange/jobs/backfill"
)

// required is the least that makes a configuration whole.
func required(more ...string) []string {
	return append([]string{
		"MSGX_PG_DSN=postgres://me:pgsecret@localhost/msgx",
		"MSGX_MAILBOX_DSN=me:mysecret@tcp(localhost:3306)/box",
		"MSGX_KAFKA_BROKERS=localhost:9092, other:9092",
		"HOME=/nowhere",
	}, more...)
}

// file writes a configuration file.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestDefaultsStandWhereNothingIsSet(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{Environ: required()})
	require.NoError(t, err)

	want := config.Defaults()
	want.PG.DSN = "postgres://me:pgsecret@localhost/msgx"
	want.Mailbox.DSN = "me:mysecret@tcp(localhost:3306)/box"
	want.Kafka.Brokers = []string{"localhost:9092", "other:9092"}
	want.Pipeline.UnsupportedAttempts = want.Pipeline.MaxAttempts
	require.Empty(t, cmp.Diff(want, c, cmp.Comparer(func(a, b interface{ String() string }) bool { return a.String() == b.String() })))
}

func TestEnvironmentWinsOverFileOverDefaults(t *testing.T) {
	t.Parallel()
	name := file(t, `
pipeline:
  poll-interval: 2s
  backoff: [1s, 3s]
  claim-batch: 70
mailbox.zone: Asia/Tokyo      # with dots, as printed
mailbox:
  status-map: {DEAD: BROKEN, SUCCESS: OK}
http:
history.enabled: true
refdata.schedule:
  RQRD-SLST: 0,30 2 * * *
`)
	c, err := config.Load(config.Sources{File: name, Environ: required(
		"MSGX_PIPELINE_POLL_INTERVAL=500ms",
		"MSGX_IDENTITY_RETENTION=30d",
		"MSGX_HTTP_MAX_BODY=1MiB",
		"MSGX_REQUEST_TIMEOUTS=RQRD-SLST=45s,RQRD-AIRC=50s",
		"MSGX_HTTP_TRUSTED_CIDRS=10.1.0.0/16,::1/128",
		"MSGX_LOG_LEVEL=debug",
	)})
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, c.Pipeline.PollInterval, "environment over file")
	require.Equal(t, 70, c.Pipeline.ClaimBatch, "file over default")
	require.Equal(t, 200, c.Pipeline.HeadBatch, "default")
	require.Equal(t, []time.Duration{time.Second, 3 * time.Second}, c.Pipeline.Backoff, "a list replaces the default whole")
	require.Equal(t, "Asia/Tokyo", c.Mailbox.Zone)
	require.Equal(t, map[backfill.Outcome]string{backfill.Dead: "BROKEN", backfill.Success: "OK"}, c.Mailbox.StatusMap)
	require.Equal(t, 30*24*time.Hour, c.Identity.Retention)
	require.Equal(t, server.MiB, c.HTTP.MaxBody)
	require.Equal(t, map[string]time.Duration{"RQRD-SLST": 45 * time.Second, "RQRD-AIRC": 50 * time.Second}, c.Request.Timeouts)
	require.Len(t, c.HTTP.TrustedCIDRs, 2)
	require.Equal(t, "DEBUG", c.Log.Level.String())
	require.True(t, c.History.Enabled)
	require.Equal(t, map[string]string{"RQRD-SLST": "0,30 2 * * *"}, c.Refdata.Schedule)
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		env  []string
		uses []string
		want []string // how each problem begins: the rest are its owner's words
	}{
		"nothing set": {
			want: []string{"pg.dsn: required", "mailbox.dsn: required", "kafka.brokers: "},
		},
		"only one section used": {
			uses: []string{"pg"},
			env:  []string{"MSGX_KAFKA_MSG_KEY=color"},
			want: []string{"pg.dsn: required"},
		},
		"everything at once": {
			file: "pipline: {x: 1}\npipeline:\n  late: never\n  claim-batch: many\npg: 5\n",
			env: required(
				"MSGX_PIPELINE_POLLINTERVAL=1s", "MSGX_PIPELINE_BACKOFF=1s,2x", "MSGX_MODE=half", "MSGX_HTTP_RATE_BURST=1.5",
				"MSGX_HTTP_MAX_BODY=huge", "MSGX_REQUEST_TIMEOUTS=45s", "MSGX_IDENTITY_WRAP_GUARD=1s",
				"MSGX_IGNORE_RULES=LDM-*,nonsense", "MSGX_OPERATION_DAY_ZONE=Mars/Base", "MSGX_PIPELINE_HOLE_PROBE=maybe",
				"MSGX_HTTP_RATE_LIMIT=-1",
			),
			want: []string{
				"pg: is no key (in FILE)",
				"pipline.x: is no key (in FILE)",
				"MSGX_PIPELINE_POLLINTERVAL: is the environment variable of no key",
				`http.max-body: "huge" `,
				`http.rate-burst: "1.5" is not a whole number`,
				`pipeline.backoff: "2x" is not a duration such as 20ms, 1m30s or 7d`,
				`pipeline.claim-batch: "many" is not a whole number`,
				`pipeline.hole-probe: "maybe" is not true or false`,
				`request.timeouts: "45s" is not written name=value`,
				`mode: "half" is none of live, shadow`,
				"http.rate-limit: -1 ",
				`operation-day.zone: "Mars/Base" is no time zone of the tz database`,
				`pipeline.late: "never" is none of report, apply`,
				"identity.wrap-guard: 1s ",
				`ignore.rules: "nonsense" is neither TYPE-STYP nor TYPE-*`,
			},
		},
		"variables of others are not ours": {
			env: required("MSGX_TEST_PG=x", "MSGX_CACHE=/c", "MSGX_FAULT_EXIT_ON=5", "PATH=/bin"),
		},
		"a secret is not shown when it is wrong": {
			env:  required("MSGX_PG_DSN=postgres://me:pgsecret@[localhost/msgx"),
			want: []string{"pg.dsn: neither a PostgreSQL URL nor a key=value string"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := config.Sources{Environ: tc.env, Uses: tc.uses}
			if tc.file != "" {
				s.File = file(t, tc.file)
			}
			_, err := config.Load(s)
			got := config.Problems(err)
			for i, line := range got {
				if s.File != "" {
					line = strings.ReplaceAll(line, s.File, "FILE")
				}
				if i < len(tc.want) && strings.HasPrefix(line, tc.want[i]) {
					line = tc.want[i]
				}
				got[i] = line
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Sources{File: "/no/such/file.yaml", Environ: required("MSGX_MODE=half")})
	require.ErrorContains(t, err, "/no/such/file.yaml")
	require.ErrorContains(t, err, "mode:", "the rest is checked all the same")

	_, err = config.Load(config.Sources{File: file(t, "a: [1"), Environ: required()})
	require.ErrorContains(t, err, "yaml")
}

// A shadow that writes to the live topics, or a live system that writes to the shadow's, is refused whatever else is right.
func TestUnsafeCombinationsAreRefused(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{
		{"MSGX_MODE=shadow", "MSGX_KAFKA_TOPIC_PREFIX="},
		{"MSGX_MODE=shadow", "MSGX_KAFKA_TOPIC_PREFIX=live."},
		{"MSGX_MODE=shadow", "MSGX_KAFKA_TOPIC_PREFIX=Live.t3."},
		{"MSGX_MODE=shadow", "MSGX_KAFKA_TOPIC_PREFIX=m", "MSGX_KAFKA_TOPIC_MSG=sg"},
		{"MSGX_MODE=live", "MSGX_KAFKA_TOPIC_PREFIX=shadow."},
		{"MSGX_MODE=live", "MSGX_KAFKA_TOPIC_SCHD=shadow.schd"},
	} {
		_, err := config.Load(config.Sources{Environ: required(environ...)})
		require.ErrorContains(t, err, "kafka.topic-prefix: ", environ)
	}
}

func TestShadowIsKeptApart(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{Environ: required("MSGX_MODE=shadow")})
	require.NoError(t, err)
	require.Equal(t, "msgexchangeapi-shadow", c.ServiceName)
	require.Equal(t, "shadow.", c.Kafka.TopicPrefix)

	c, err = config.Load(config.Sources{Environ: required("MSGX_MODE=shadow", "MSGX_KAFKA_TOPIC_PREFIX=trial.")})
	require.NoError(t, err)
	require.Equal(t, "trial.", c.Kafka.TopicPrefix)
}

func TestPrintShowsEveryKeyAndNoSecret(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{Environ: required("MSGX_KAFKA_SASL_MECHANISM=PLAIN", "MSGX_KAFKA_SASL_USER=me",
		"MSGX_KAFKA_SASL_PASSWORD=kafkasecret", "MSGX_ADMIN_API_TOKEN=apisecret")})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, config.Print(&out, c))

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Contains(t, lines, "pg.dsn: '***'")
	require.Contains(t, lines, "pipeline.backoff: 1s,2s,4s,8s,16s")
	require.Contains(t, lines, "raw.retention: 168h")
	require.Contains(t, lines, "identity.retention: 400d")
	require.Contains(t, lines, "archive.schedule: 0 3 * * *")
	require.Contains(t, lines, `admin-api.url: ""`)
	require.NotContains(t, out.String(), "secret", "every secret above ends in that word")
	for _, line := range lines {
		require.Regexp(t, `^[a-z-]+(\.[a-z-]+)*: .+$`, line)
	}
}

func TestWhatIsPrintedCanBeLoaded(t *testing.T) {
	t.Parallel()
	first, err := config.Load(config.Sources{Environ: required(
		"MSGX_MODE=shadow", "MSGX_REQUEST_TIMEOUTS=RQRD-SLST=45s", "MSGX_REFDATA_SCHEDULE=RQRD-SLST=0,30 2 * * *",
	)})
	require.NoError(t, err)
	var printed, again bytes.Buffer
	require.NoError(t, config.Print(&printed, first))

	second, err := config.Load(config.Sources{File: file(t, printed.String()), Environ: required()})
	require.NoError(t, err)
	require.NoError(t, config.Print(&again, second))
	require.Equal(t, printed.String(), again.String())
}
