package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
)

// TestTheArchiveKeepsEveryColumn: whoever moves rows into a table of the archive names all its columns, also those that a
// later migration added; one that is left out would be lost without a word.
func TestTheArchiveKeepsEveryColumn(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	columns := func(table string) []string {
		rows, err := tx.Query(t.Context(), `SELECT column_name::text FROM information_schema.columns WHERE table_name = $1`, table)
		require.NoError(t, err)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		slices.Sort(names)
		return names
	}
	for _, table := range []string{"proc_state", "msg_event"} {
		want := append(columns(table), "archived_at")
		slices.Sort(want)
		require.Equal(t, want, columns(table+"_hst"), "the archive's table has the same columns")
	}
	files, err := filepath.Glob("../queries/*.sql")
	require.NoError(t, err)
	moves := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`INSERT INTO (\w+_hst)\s*\(([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			moves++
			named := strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune(", \n", r) })
			slices.Sort(named)
			require.Equal(t, columns(m[1]), named, "%s: %s", file, m[1])
		}
	}
	require.Positive(t, moves)
}
