package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both READMEs lead to the same commands and the same pages.
func TestREADMEsInStep(t *testing.T) {
	t.Parallel()
	said := func(path string) (commands, links []string) {
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				command, _, _ := strings.Cut(line, " #")
				commands = append(commands, strings.TrimSpace(command))
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(link[1], "README") {
				links = append(links, link[1])
			}
		}
		slices.Sort(links)
		return commands, slices.Compact(links)
	}
	commands, links := said("README.md")
	theirs, pages := said("README.zh-CN.md")
	require.NotEmpty(t, commands)
	require.Equal(t, commands, theirs)
	require.Equal(t, links, pages)
}
