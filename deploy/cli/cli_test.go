package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/deploy/cli"
)

// result is what a run of the program left.
type result struct {
	code        int
	out, errors string
}

// program runs the program.
func program(t *testing.T, environ []string, stdin string, args ...string) result {
	t.Helper()
	var out, errors bytes.Buffer
	code := cli.Main(t.Context(), cli.Process{
		Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errors,
		Version: "v1.2.3", Commit: "abc",
	})
	return result{code: code, out: out.String(), errors: errors.String()}
}

func TestUsageErrorsEndWith2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"bogus"},
		{"serve", "--bogus"},
		{"serve", "--roles", "cook"},
		{"migrate"},
		{"decode"},
		{"simulate"},
		{"simulate", "--count", "1", "--duration", "1s"},
		{"simulate", "--count", "many"},
		{"simulate", "--count=1", "--fault", "fire"},
		{"simulate", "--fault", "holes"},
		{"simulate", "--fault", "poison,hole"},
		{"simulate", "--fault", "poison", "--answer"},
	} {
		got := program(t, nil, "", args...)
		require.Equal(t, 2, got.code, "%v: %s", args, got.errors)
		require.Contains(t, got.errors, "msgexchange: ", args)
		require.Empty(t, got.out, args)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for command, says := range map[string]string{
		"":               "decode",
		"serve":          "Needs pg.dsn",
		"migrate up":     "Needs pg.dsn",
		"migrate status": "Changes nothing",
		"demo":           "Needs no configuration",
		"simulate":       "Needs mailbox.dsn",
		"doctor":         "configuration of serve",
		"compare":        "changes nothing",
		"decode":         "Needs nothing",
		"version":        "version",
	} {
		got := program(t, nil, "", append(strings.Fields(command), "--help")...)
		require.Zero(t, got.code, command)
		require.Contains(t, got.out, says, command)
		require.Empty(t, got.errors, command)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := program(t, nil, "", "version")
	require.Zero(t, got.code)
	require.Regexp(t, `^msgexchange v1\.2\.3 commit abc go1\.\d+`, got.out)
}

func TestConfigurationErrorsAreAllListedAndEndWith1(t *testing.T) {
	t.Parallel()
	got := program(t, []string{"MSGX_MODE=half", "MSGX_NONSENSE=1"}, "", "serve")
	require.Equal(t, 1, got.code)
	require.Empty(t, got.out)
	for _, key := range []string{"mode: ", "MSGX_NONSENSE: ", "pg.dsn: ", "mailbox.dsn: ", "kafka.brokers: "} {
		require.Contains(t, got.errors, "msgexchange: "+key)
	}
}

func TestPrintConfigMasksSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{
		"MSGX_PG_DSN=postgres://me:hidden@localhost/msgx", "MSGX_MAILBOX_DSN=me:hidden@tcp(localhost)/box", "MSGX_KAFKA_BROKERS=localhost:9092",
	}
	got := program(t, environ, "", "serve", "--print-config")
	require.Zero(t, got.code, got.errors)
	require.Contains(t, got.out, "pg.dsn: '***'\n")
	require.Contains(t, got.out, "kafka.brokers: localhost:9092\n")
	require.NotContains(t, got.out, "hidden")

	got = program(t, environ[1:], "", "serve", "--print-config")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "pg.dsn: \"\"\n", "printed as far as it goes")
	require.Contains(t, got.errors, "pg.dsn: ")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	environ := []string{"MSGX_PG_DSN=" + dbtest.New(t).Config().ConnString()}
	got := program(t, environ, "", "migrate", "up")
	require.Zero(t, got.code, got.errors)

	got = program(t, environ, "", "migrate", "status")
	require.Zero(t, got.code, got.errors)
	require.Regexp(t, `(?m)^own +1 +00001_\S+ +\d{4}-`, got.out)
	require.Regexp(t, `(?m)^river +1 `, got.out)
	require.NotContains(t, got.out, "missing")
}

func TestMigrateWithoutServer(t *testing.T) {
	t.Parallel()
	got := program(t, []string{"MSGX_PG_DSN=postgres://me:hidden@127.0.0.1:1/none?connect_timeout=1"}, "", "migrate", "up")
	require.Equal(t, 1, got.code)
	require.NotContains(t, got.errors, "hidden")
}

const stand = `<MSG><META><SNDR>AODB</SNDR><SEQN>7</SEQN><DTTM>20261130090311</DTTM><TYPE>FLOP</TYPE><STYP>ESTT</STYP></META>` +
	`<FLOP><FLID>15</FLID><ESTT>30NOV260910</ESTT></FLOP></MSG>`

// of is a message of that kind.
func of(typ, styp, body string) string {
	meta, _, _ := strings.Cut(stand, "<FLOP>")
	return strings.NewReplacer("FLOP", typ, "ESTT", styp).Replace(meta) + body + "</MSG>"
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		code int
		says string
	}{
		"ok":            {text: stand, says: `"outcome":"OK","kind":"FLOP-ESTT"`},
		"malformed":     {text: "<MSG>", code: 1, says: `"outcome":"MALFORMED"`},
		"protocol":      {text: strings.Replace(stand, "<FLID>15</FLID>", "", 1), code: 1, says: `"outcome":"PROTOCOL"`},
		"unsupported":   {text: strings.Replace(stand, "<STYP>ESTT</STYP>", "<STYP>XXXX</STYP>", 1), code: 1, says: `"outcome":"UNSUPPORTED"`},
		"document type": {text: "<!DOCTYPE MSG>" + stand, code: 1, says: `"outcome":"MALFORMED"`},
		"no body":       {text: strings.Replace(strings.Replace(stand, "<FLOP>", "<FLIP>", 1), "</FLOP>", "</FLIP>", 1), code: 1, says: `"outcome":"MALFORMED","kind":"FLOP-ESTT"`},
		"answer":        {text: of("SCHD", "RESP", "<SCHD/>"), says: `"outcome":"OK","kind":"SCHD-RESP"`},
		"list": {
			text: of("TLST", "UPD", "<RECS>2</RECS><TLST><TCOD>T1</TCOD><TPAX>y</TPAX></TLST>"),
			says: `"body":{"records":[{"tcod":"T1","tpax":"Y"}],"remarks":["RECS is 2 and there are 1 TLST"]}`,
		},
		"broken list": {text: of("TLST", "ADD", "<TLST><TCOD>1</TCOD></TLST><TLST><TCOD>1</TCOD></TLST>"), code: 1, says: `"outcome":"PROTOCOL","kind":"TLST-ADD"`},
		"own request": {text: of("RQRD", "TLST", "<RQRD><RTYP>TLST</RTYP></RQRD>"), code: 1, says: `"outcome":"UNSUPPORTED","kind":"RQRD-TLST"`},
		"ignored":     {text: strings.Replace(stand, "<TYPE>FLOP</TYPE>", "<TYPE>LDM</TYPE>", 1), says: `"outcome":"IGNORED"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := program(t, nil, tc.text, "decode", "-")
			require.Equal(t, tc.code, got.code, got.errors)
			require.Contains(t, strings.ReplaceAll(got.out, `": "`, `":"`), tc.says)
			require.Empty(t, got.errors)
		})
	}
}

func TestDecodeFiles(t *testing.T) {
	t.Parallel()
	good, bad := filepath.Join(t.TempDir(), "good.xml"), filepath.Join(t.TempDir(), "bad.xml")
	require.NoError(t, os.WriteFile(good, []byte("\xef\xbb\xbf"+stand), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("\xff\xff"), 0o600))

	got := program(t, nil, "", "decode", bad, good)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `(?s)"MALFORMED".*"OK"`, got.out, "one bad file does not keep the next from being read")

	got = program(t, nil, "", "decode", filepath.Join(t.TempDir(), "none.xml"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.errors, "none.xml")
}
