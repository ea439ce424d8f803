package systemtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's.
const root = "../.."

// docs/guarantees.md names tests and folders that exist, and for every known fault of this part of the system a test that
// bears its number.
func TestGuaranteesNameWhatExists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/guarantees.md"))
	require.NoError(t, err)
	exists := tests(t)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, exists[m[1]], "%s does not exist", m[1])
		named[m[1]] = true
	}
	for k := 1; k <= 22; k++ {
		if k == 10 || k == 18 {
			continue // the archive's; the decoder's
		}
		prefix, found := fmt.Sprintf("TestK%02d_", k), false
		for name := range named {
			found = found || strings.HasPrefix(name, prefix)
		}
		require.True(t, found, "no test named for K%02d", k)
	}
	for name := range exists {
		if regexp.MustCompile(`^Test(O\d|K0[1-9]|K1[1-79]|K2[0-2])_`).MatchString(name) && !named[name] {
			t.Logf("not on the page: %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`((?:db|jobs|workers|http|deploy)(?:/[a-z_./]+)?)`").FindAllStringSubmatch(string(page), -1) {
		_, err := os.Stat(filepath.Join(root, m[1]))
		require.NoError(t, err)
	}
}

// tests lists every test of the tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			all[string(m[1])] = true
		}
		return err
	}))
	return all
}
