package alerts_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"msgexchange/deploy/cli"
	"msgexchange/deploy/config"
)

// What the runbook tells a tired engineer to type exists: doors, orders, commands, keys, events, places in the page.
func TestRunbookIsRight(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"runbook.md", "cutover.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text := string(read(t, top+"/docs/"+page))
			for _, call := range regexp.MustCompile(`(?m)\b(get|order) '?(/[^\s'`+"`"+`?]*)`).FindAllStringSubmatch(text, -1) {
				method := map[string]string{"get": "get", "order": "post"}[call[1]]
				require.True(t, served(t, method, call[2]), "%s %s is not served", method, call[2])
			}
			for _, call := range regexp.MustCompile(`get '(/[^'?]*)\?([^']*)'`).FindAllStringSubmatch(text, -1) {
				query, err := url.ParseQuery(call[2])
				require.NoError(t, err, call[0])
				for name := range query {
					require.Contains(t, parameters(t, call[1]), name, "%s does not know %s", call[1], name)
				}
			}
			for _, order := range regexp.MustCompile(`order \S+ '([^']*)'`).FindAllStringSubmatch(text, -1) {
				var body struct{ Reason string }
				require.NoError(t, json.Unmarshal([]byte(order[1]), &body), order[1])
				require.NotEmpty(t, body.Reason, order[1])
			}
			for _, c := range regexp.MustCompile("`?msgexchange ([a-z]+[a-z ]*)[`'\n]").FindAllStringSubmatch(text, -1) {
				require.Zero(t, help(t, c[1]), "there is no command %q", c[1])
			}
			known(t, page, text)
			keys(t, text)
			events(t, text)
			anchors(t, text)
		})
	}
}

// served says whether the description of the API has the door.
func served(t *testing.T, method, path string) bool {
	t.Helper()
	var api struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(read(t, top+"/http/server/openapi.yaml"), &api))
	for template, methods := range api.Paths {
		pattern := regexp.MustCompile(`\\{[^/]*\\}`).ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
		if _, ok := methods[method]; ok && regexp.MustCompile("^"+pattern+"$").MatchString(path) {
			return true
		}
	}
	return false
}

// parameters are the names of those that a GET takes in its query.
func parameters(t *testing.T, path string) (names []string) {
	t.Helper()
	type parameter struct {
		Name, In string
		Ref      string `yaml:"$ref"`
	}
	var api struct {
		Paths map[string]struct {
			Get struct{ Parameters []parameter }
		}
		Components struct{ Parameters map[string]parameter }
	}
	require.NoError(t, yaml.Unmarshal(read(t, top+"/http/server/openapi.yaml"), &api))
	for _, p := range api.Paths[path].Get.Parameters {
		if p.Ref != "" {
			p = api.Components.Parameters[filepath.Base(p.Ref)]
		}
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

// help asks a command for its help and gives the exit code.
func help(t *testing.T, command string) int {
	t.Helper()
	var out bytes.Buffer
	return cli.Main(t.Context(), cli.Process{Args: append(strings.Fields(command), "--help"), Stdout: &out, Stderr: &out})
}

// keys requires that everything that looks like a key of the configuration is one.
func keys(t *testing.T, text string) {
	t.Helper()
	var all bytes.Buffer
	require.NoError(t, config.Print(&all, config.Defaults()))
	sections := map[string]bool{}
	for line := range strings.Lines(all.String()) {
		section, _, dotted := strings.Cut(line, ".")
		sections[section] = dotted
	}
	for _, key := range regexp.MustCompile("`([a-z-]+)\\.([a-z.-]+[a-z])`").FindAllStringSubmatch(text, -1) {
		if sections[key[1]] {
			require.Contains(t, all.String(), "\n"+key[1]+"."+key[2]+":", "there is no key %s.%s", key[1], key[2])
		}
	}
}

// events requires that every log event named is one.
func events(t *testing.T, text string) {
	t.Helper()
	n, err := sources()
	require.NoError(t, err)
	for _, name := range regexp.MustCompile("[Ll]og\\s+event\\s+`([^`]*)`").FindAllStringSubmatch(text, -1) {
		require.Contains(t, n.events, name[1])
	}
}

// anchors requires that the places linked to exist.
func anchors(t *testing.T, text string) {
	t.Helper()
	there := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		there[strings.NewReplacer(" ", "-", ".", "", ",", "").Replace(strings.ToLower(h[1]))] = true
	}
	for _, a := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		require.True(t, there[a[1]], "there is no place #%s", a[1])
	}
}
