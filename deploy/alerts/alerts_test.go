// Package alerts_test holds what operators read against what the program does: alert rules, dashboard, runbook and the list
// of log events name only what exists.
package alerts_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// top is the top of the repository.
const top = "../.."

// rule is one alert.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name     string `yaml:"name"`
			Interval string `yaml:"interval"`
			Rules    []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	strictly(t, "msgexchange.yaml", &file)
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// strictly reads a YAML file that has nothing but what v has.
func strictly(t *testing.T, name string, v any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(read(t, name)))
	d.KnownFields(true)
	require.NoError(t, d.Decode(v), name)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}

func TestAlertsAreWhole(t *testing.T) {
	t.Parallel()
	runbook := string(read(t, top+"/docs/runbook.md"))
	tests := string(read(t, "msgexchange_test.yaml"))
	for _, r := range rules(t) {
		require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Equal(t, "docs/runbook.md#"+strings.ToLower(r.Alert), r.Annotations["runbook"])
		require.Contains(t, runbook, "\n## "+r.Alert+"\n", "the runbook's section")
		require.Contains(t, tests, "- name: "+r.Alert+"\n", "its own rule test")
		require.Contains(t, tests, "- { alertname: "+r.Alert+", eval_time: 35m }\n", "its place in the test in which all is well")
		known(t, r.Alert, r.Expr)
	}
	headings := regexp.MustCompile(`(?m)^## (Msgx\w+)$`).FindAllStringSubmatch(runbook, -1)
	for _, h := range headings {
		require.True(t, slices.ContainsFunc(rules(t), func(r rule) bool { return r.Alert == h[1] }), "the runbook has %s, which is no alert", h[1])
	}
}

// TestRules lets promtool play the rules' own tests.
func TestRules(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), promtool(t), "test", "rules", "msgexchange_test.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
}

// promtool finds it where deploy/setup/servers.sh puts it, or skips; under CI=true it must be there.
func promtool(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("MSGX_CACHE")
	if home, err := os.UserCacheDir(); cache == "" && err == nil {
		cache = filepath.Join(home, "msgexchange")
	}
	for _, name := range []string{"promtool", filepath.Join(cache, "root/usr/bin/promtool")} {
		if path, err := exec.LookPath(name); err == nil || errors.Is(err, exec.ErrDot) {
			return path
		}
	}
	const why = "not run: no promtool; deploy/setup/servers.sh promtool gets it"
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}
