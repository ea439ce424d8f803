package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/store"
)

func TestFloor(t *testing.T) {
	t.Parallel()
	var f store.Floor
	require.Zero(t, f.After(at), "the first read sees everything")
	f.Rise(7)
	require.EqualValues(t, 6, f.After(at.Add(time.Second-1)), "7 waits and is read again")
	f.Rise(9)
	require.EqualValues(t, 8, f.After(at.Add(time.Second-1)))
	require.Zero(t, f.After(at.Add(time.Second)), "what came back below is seen")
	f.Rise(9)
	require.EqualValues(t, 8, f.After(at.Add(time.Second)))
	require.Zero(t, f.After(at), "a clock that was set back does not hide anything")
}
