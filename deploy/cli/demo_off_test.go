//go:build !demo

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoIsNotInTheProduct(t *testing.T) {
	t.Parallel()
	got := program(t, nil, "", "demo", "--duration", "1s")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.errors, "tag demo")
}
