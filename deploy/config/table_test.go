package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

// root is the folder of the module as seen from this package.
const root = "../.."

// TestKeyTable keeps docs/configuration.md equal to the structs: their comments are the documentation.
func TestKeyTable(t *testing.T) {
	t.Parallel()
	page := filepath.Join(root, "docs", "configuration.md")
	want := keyTable(t)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644)) //nolint:gosec // a document
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "stale: run make generate")
}

func TestEveryKeyHasItsOwnVariable(t *testing.T) {
	t.Parallel()
	c := Defaults()
	seen := map[string]string{}
	for _, k := range keysOf(&c) {
		require.Empty(t, seen[k.env()], "%s has the variable of %s", k.name, seen[k.env()])
		seen[k.env()] = k.name
		require.False(t, notOurs(k.env()), k.env())
	}
}

// keyTable writes the page.
func keyTable(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("# Configuration\n\n" +
		"<!-- Generated from the structs by `make generate`; do not edit. -->\n\n" +
		"Defaults, then the YAML file of `--config`, then the environment: the later one wins. Everything wrong is reported at once and\n" +
		"stops the start. `serve --print-config` shows the result with secrets masked, in a form that can be loaded again.\n\n" +
		"Durations are written `20ms`, `1m30s` or `400d`, sizes `64KiB` or `10MiB`, lists `a,b,c` (in YAML also as lists), maps `k=v,k=v`\n" +
		"(in YAML also as maps). A secret is shown nowhere.\n\n" +
		"| key | environment | default | meaning |\n|---|---|---|---|\n")
	c := Defaults()
	docs := map[reflect.Type]map[string]string{}
	for _, k := range keysOf(&c) {
		if docs[k.owner] == nil {
			docs[k.owner] = fieldDocs(t, k.owner)
		}
		meaning := docs[k.owner][k.field.Name]
		require.NotEmpty(t, meaning, "%s.%s needs a comment", k.owner, k.field.Name)
		if k.secret() {
			meaning += " Secret."
		}
		value := k.shown()
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&page, "| `%s` | `%s` | %s | %s |\n", k.name, k.env(), value, strings.ReplaceAll(meaning, "|", `\|`))
	}
	return page.String()
}

// fieldDocs reads the comments of a struct's fields from its source, as sentences about the key.
func fieldDocs(t *testing.T, owner reflect.Type) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, strings.TrimPrefix(owner.PkgPath(), "msgexchange/"), "*.go"))
	require.NoError(t, err)
	docs := map[string]string{}
	for _, name := range files {
		source, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(source, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != owner.Name() {
				return true
			}
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				for _, name := range field.Names {
					docs[name.Name] = sentence(name.Name, field.Doc.Text())
				}
			}
			return false
		})
	}
	return docs
}

// sentence takes the name of the field and its verb off a comment: "Batch is how many …" becomes "How many …".
func sentence(field, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	for _, verb := range []string{" is ", " are "} {
		text = strings.TrimPrefix(text, field+verb)
	}
	text = strings.TrimPrefix(text, field+" ")
	text = regexp.MustCompile(` Default:? [^ ]+\.$`).ReplaceAllString(text, "") // the table has a column for it
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
