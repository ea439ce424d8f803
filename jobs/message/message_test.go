package message_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/message"
)

func TestPositionJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := message.Position{Generation: rapid.Int32Range(0, 5).Draw(t, "gen"), ID: rapid.Int64Range(0, 1<<53).Draw(t, "id")}
		b, err := json.Marshal(p)
		require.NoError(t, err)
		var q message.Position
		require.NoError(t, json.Unmarshal(b, &q))
		require.Equal(t, p, q)
	})
	require.Error(t, new(message.Position).UnmarshalJSON([]byte(`"x:1"`)))
	require.Error(t, new(message.Position).UnmarshalJSON([]byte(`null`)))
}

// A later generation of ids is after every id of an earlier one (contract §8.10).
func TestPositionOrder(t *testing.T) {
	t.Parallel()
	old, reused := message.Position{ID: 900}, message.Position{Generation: 1, ID: 1}
	require.True(t, reused.After(old))
	require.False(t, old.After(old))
	require.Equal(t, "900", old.String())
	require.Equal(t, "1:1", reused.String())
}

func TestIdentityKeyComparesTheNumber(t *testing.T) {
	t.Parallel()
	require.Equal(t, "AODB|FLOP|PSDT|777", message.Meta{SNDR: "aodb", TYPE: "FLOP", STYP: "PSDT", SEQN: 777}.IdentityKey())
}
