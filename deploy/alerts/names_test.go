package alerts_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/log-events.md")

// names are what the program's sources call things.
type names struct {
	metrics map[string]bool
	events  map[string]string // the level by name
}

// sources reads the names out of all code of the product, once.
var sources = sync.OnceValues(func() (names, error) {
	n := names{metrics: map[string]bool{}, events: map[string]string{}}
	return n, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return errorOr(err, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/pgq/") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			ast.Inspect(f, n.look)
		}
		return err
	})
})

func errorOr(err error, d fs.DirEntry) error {
	if err == nil && d.IsDir() {
		return filepath.SkipDir
	}
	return err
}

var (
	metricName = regexp.MustCompile(`^msgx_[a-z_]+$`)
	levelName  = regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$`)
)

func (n names) look(node ast.Node) bool {
	switch x := node.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING && metricName.MatchString(text) {
			n.metrics[text] = true
		}
	case *ast.CallExpr:
		n.event(x)
	}
	return true
}

// event notes a call such as log.WarnContext(ctx, "hole passed", …).
func (n names) event(call *ast.CallExpr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	method, _, withContext := strings.Cut(f.Sel.Name, "Context")
	level, place := strings.ToUpper(method), 0
	switch {
	case f.Sel.Name == "LogAttrs": // ctx, level, name
		level, place = "by outcome", 2
	case !levelName.MatchString(f.Sel.Name):
		return
	case withContext:
		place = 1
	}
	if len(call.Args) <= place {
		return
	}
	if lit, ok := call.Args[place].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			n.events[text] = level
		}
	}
}

// known requires that every metric in a query is one of the program's, or of the libraries that add theirs.
func known(t *testing.T, where, query string) {
	t.Helper()
	n, err := sources()
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`\b(msgx|go|process|pgxpool)_[a-z_]+\b`).FindAllString(query, -1) {
		if !strings.HasPrefix(name, "msgx_") {
			require.Contains(t, []string{"go_goroutines", "process_resident_memory_bytes"}, name, where)
			continue
		}
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		require.True(t, n.metrics[name] || n.metrics[base], "%s: there is no metric %s", where, name)
	}
}

// Every metric of the contract is made somewhere.
func TestContractsMetricsExist(t *testing.T) {
	t.Parallel()
	known(t, "contract", `msgx_backlog_unfinished msgx_backlog_oldest_unprocessed_seconds msgx_head_attempts msgx_watermark msgx_watermark_lag
		msgx_hole_open msgx_hole_aged_out_total msgx_late_arrival_detected_total msgx_messages_total msgx_process_seconds msgx_end_to_end_seconds
		msgx_events_pending msgx_events_oldest_seconds msgx_events_dead msgx_backfill_unmarked_terminal msgx_backfill_oldest_unmarked_seconds
		msgx_backfill_abandoned msgx_duplicates_total msgx_requests_open msgx_requests_expired_total msgx_refdata_age_seconds
		msgx_poll_last_success_timestamp msgx_lease_epoch msgx_inbox_stopped`)
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	type source struct{ Type, UID string }
	var d struct {
		Title      string
		Templating struct{ List []struct{ Name, Type string } }
		Panels     []struct {
			ID          int
			Type, Title string
			Datasource  source
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct {
				Expr       string
				Datasource source
			}
		}
	}
	require.NoError(t, json.Unmarshal(read(t, "../grafana/msgexchange.json"), &d))
	require.Equal(t, "datasource", d.Templating.List[0].Type, "the data source is a variable")
	shown := map[string]bool{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "id %d twice", p.ID)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			require.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			known(t, p.Title, q.Expr)
			for _, name := range regexp.MustCompile(`msgx_[a-z_]+`).FindAllString(q.Expr, -1) {
				shown[name] = true
			}
		}
	}
	for _, r := range rules(t) {
		for _, name := range regexp.MustCompile(`msgx_[a-z_]+`).FindAllString(r.Expr, -1) {
			if name != "msgx_build_info" && name != "msgx_inbox_stopped" && name != "msgx_codeshare_loops_total" {
				require.True(t, shown[name], "%s is alerted on and shown nowhere", name)
			}
		}
	}
}

// The page of log events is what the code logs.
func TestLogEventsPage(t *testing.T) {
	t.Parallel()
	n, err := sources()
	require.NoError(t, err)
	page := "# Log events\n\n<!-- Collected from the code by `make generate`; do not edit. -->\n\n" +
		"The `msg` of a record is one of these; it is never reworded without a line in the changelog. ERROR: somebody must act, and an alert exists.\n" +
		"WARN: retried or worked around by itself. INFO: one line an outcome. DEBUG: detail.\n\n" +
		"`trace_id` is in every record about a message; it is that of the `traceparent` of the message's records in Kafka.\n\n| event | level |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(n.events)) {
		page += fmt.Sprintf("| `%s` | %s |\n", name, n.events[name])
	}
	const file = top + "/docs/log-events.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	}
	require.Empty(t, cmp.Diff(string(read(t, file)), page), "run make generate")
}
