//go:build faults

package head_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// MSGX_FAULT_INFRA_ON fails one message for its first attempts and lets the next pass (contract §8.21).
func TestInfraHook(t *testing.T) {
	t.Setenv("MSGX_FAULT_INFRA_ON", "2:2")
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"), stand(3, 15, "3"))
	r.step()
	r.requireStates("1 SUCCEEDED 1x", "2 FAILED INFRA/INFRA 1x", "3 PENDING 0x")
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 3x", "3 SUCCEEDED 1x")
	require.Equal(t, []string{"15 stand 3 v3"}, r.flights())
}
