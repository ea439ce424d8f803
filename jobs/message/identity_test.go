package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/message"
)

func TestMeet(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 18, 9, 0, 0, 0, time.UTC)
	skip, process := message.IdentityDefaults(), message.IdentityDefaults()
	process.OnReuse = message.OnReuseProcess
	for name, c := range map[string]struct {
		policy   message.IdentityPolicy
		apart    time.Duration
		sameBody bool
		want     message.Reuse
	}{
		"again":                      {skip, time.Second, true, message.ReuseDuplicate},
		"again, made earlier":        {skip, -time.Hour, true, message.ReuseDuplicate},
		"exactly at the guard":       {skip, 12 * time.Hour, true, message.ReuseDuplicate},
		"past the guard":             {skip, 12*time.Hour + 1, true, message.ReuseWrapped},
		"past the guard, earlier":    {skip, -13 * time.Hour, false, message.ReuseWrapped},
		"counter restarted":          {skip, time.Minute, false, message.ReuseContent},
		"counter restarted, process": {process, time.Minute, false, message.ReuseProcessed},
		"again, process":             {process, time.Minute, true, message.ReuseDuplicate},
	} {
		require.Equal(t, c.want, c.policy.Meet(at, at.Add(c.apart), c.sameBody), name)
	}
}

func TestKeyMayHaveTheDay(t *testing.T) {
	t.Parallel()
	m := message.Meta{SNDR: "AODB", TYPE: "FLOP", STYP: "STND", SEQN: 7, DTTM: time.Date(2026, 3, 18, 9, 0, 0, 0, time.UTC)}
	p := message.IdentityDefaults()
	require.Equal(t, "AODB|FLOP|STND|7", p.Key(m))
	p.IncludeDayBoundary = true
	require.Equal(t, "AODB|FLOP|STND|7|20260318", p.Key(m))
}
