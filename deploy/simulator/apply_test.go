package simulator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	state "msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// TestEveryMessageAppliesCleanly sends days of traffic through the code that decodes and decides in production.
func TestEveryMessageAppliesCleanly(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Seed: 13})
	opt := sis.Options{Zone: g.Zone, Ignore: sis.IgnoreRules{"LDM-*", "RSTA-*"}}
	world := state.NewSet()
	ids, last := map[string]bool{}, map[message.Kind]int{}
	effective := 0
	for id := range int64(12_000) {
		m := g.Next()
		decoded, err := sis.Decode([]byte(m.Text), opt)
		require.NoError(t, err, m.Text)
		require.Equal(t, m.Kind, decoded.Meta.Kind())
		require.Equal(t, m.SEQN, decoded.Meta.SEQN)
		require.True(t, m.At.Equal(decoded.Meta.DTTM))
		require.False(t, ids[decoded.Meta.IdentityKey()])
		ids[decoded.Meta.IdentityKey()] = true
		if decoded.Ignored != "" {
			continue
		}
		o, err := state.Decide(world, decoded, message.Position{ID: id + 1}, m.At, state.Options{Zone: g.Zone})
		require.NoError(t, err, m.Text)
		world.Apply(o)
		for _, c := range o.Changes {
			if c.Op != "" {
				effective++
				last[m.Kind]++
				break
			}
		}
	}
	require.Greater(t, effective, 11_000, "nearly every message says something new: %v", last)
}

func TestSpoiledMessagesAreMalformed(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Seed: 1, Flights: 4})
	for n := range 7 {
		_, err := sis.Decode([]byte(spoil(g.Next().Text, n)), sis.Options{Zone: g.Zone})
		require.Equal(t, fault.Malformed, fault.Of(err), "way %d", n)
	}
}
