package dbserver

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTempDir_goesWhenItsOwnerIsGone(t *testing.T) { //nolint:paralleltest // sets an environment variable
	t.Setenv("TMPDIR", t.TempDir())
	mine, err := newTempDir("x")
	require.NoError(t, err)
	lost, err := newTempDir("x")
	require.NoError(t, err)
	require.DirExists(t, mine.path, "its owner lives")
	require.NoError(t, lost.owner.Close()) // as the system does with a process that is killed
	require.NoError(t, os.WriteFile(lost.path+"/data", nil, 0o600))

	next, err := newTempDir("x")
	require.NoError(t, err)
	require.NoDirExists(t, lost.path)
	require.DirExists(t, mine.path)
	require.NoError(t, mine.remove())
	require.NoError(t, next.remove())
	require.NoDirExists(t, mine.path)
}
