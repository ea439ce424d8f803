package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	left := write("left.json", `[{"flid":1,"gate":"A"}]`)
	right := write("right.json", `[{"flid":1,"gate":"B"}]`)
	explained := write("tolerance.yaml", `[{field: gate, why: INC-1}]`)

	require.Zero(t, program(t, nil, "", "compare", left, left).code)
	got := program(t, nil, "", "compare", left, right)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, `1 gate: "A", "B"`)
	got = program(t, nil, "", "compare", "--json", "--tolerance", explained, left, right)
	require.Zero(t, got.code, got.errors)
	var report struct {
		Explained []struct{ ID, Path, Why string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.Equal(t, "INC-1", report.Explained[0].Why)
	require.Equal(t, 1, program(t, nil, "", "compare", left, filepath.Join(dir, "none")).code)

	empty := write("empty.json", `{"is_success":true,"body":[]}`)
	allOnTheRight := write("right.yaml", `[{on: right, why: the old system does not know them}]`)
	for _, args := range [][]string{{empty, empty}, {"--tolerance", allOnTheRight, empty, right}} {
		got = program(t, nil, "", append([]string{"compare"}, args...)...)
		require.Equal(t, 1, got.code, "an exit code of 0 is the proof of a cut-over: %v", args)
		require.Contains(t, got.errors, "nothing was compared")
	}
	require.Equal(t, 1, program(t, nil, "", "compare", left, "kafka:msg").code, "no brokers are configured")
}
