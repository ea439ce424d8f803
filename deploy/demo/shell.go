//go:build demo

package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// functions are those of docs/runbook.md, so that what it says can be typed as it stands.
const functions = `ask()    { curl -sS -H "Authorization: Bearer $TOKEN" "$@"; }
shown()  { if command -v jq >/dev/null; then jq .; else cat; echo; fi; }
get()    { ask "$M$1" | shown; }
order()  { ask -H 'Content-Type: application/json' -d "$2" "$M$1" | shown; }
metric() { ask "$M/metrics" | grep "^$1"; }
`

// startShell writes a file for another terminal: who reads it in with "." works on the demo as the runbook says.
func (w *world) startShell(_ context.Context, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	w.shellFile = filepath.Join(dir, "demo.sh")
	var b strings.Builder
	fmt.Fprintf(&b, "M=http://%s\nTOKEN=%s\n%s", w.listener.Addr(), w.token, functions)
	fmt.Fprintf(&b, "msgexchange() { %s '%s' \"$@\"; }\n", strings.Join(w.settings(), " "), program)
	if err := os.WriteFile(w.shellFile, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// settings are the demo's configuration as far as it is not the default, as variables of a shell.
func (w *world) settings() []string {
	c := w.cfg
	return []string{
		"MSGX_LOG_FORMAT=text",
		fmt.Sprintf("MSGX_PG_DSN='%s'", c.PG.DSN),
		fmt.Sprintf("MSGX_MAILBOX_DSN='%s'", c.Mailbox.DSN),
		fmt.Sprintf("MSGX_KAFKA_BROKERS='%s'", strings.Join(c.Kafka.Brokers, ",")),
		fmt.Sprintf("MSGX_HTTP_TOKENS_FILE='%s'", c.HTTP.TokensFile),
		fmt.Sprintf("MSGX_PIPELINE_MAX_COMMIT_DELAY=%s", c.Pipeline.MaxCommitDelay),
	}
}
