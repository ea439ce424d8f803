package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/retry"
)

func TestFailed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		class    fault.Class
		attempts int
		started  time.Time
		want     retry.Verdict
	}{
		"malformed is dead at once":   {fault.Malformed, 1, at, retry.Verdict{State: message.Dead, Class: fault.Malformed, Root: fault.Malformed}},
		"protocol is dead at once":    {fault.Protocol, 1, at, retry.Verdict{State: message.Dead, Class: fault.Protocol, Root: fault.Protocol}},
		"first try waits a second":    {fault.Infra, 1, at, retry.Verdict{State: message.Failed, Class: fault.Infra, Root: fault.Infra, Next: at.Add(time.Second)}},
		"fourth try waits eight":      {fault.CodecError, 4, at, retry.Verdict{State: message.Failed, Class: fault.CodecError, Root: fault.CodecError, Next: at.Add(8 * time.Second)}},
		"fifth try is the last":       {fault.Unsupported, 5, at, retry.Verdict{State: message.Dead, Class: fault.Exhausted, Root: fault.Unsupported}},
		"a try past the deadline":     {fault.Infra, 2, at.Add(-10 * time.Minute), retry.Verdict{State: message.Dead, Class: fault.Exhausted, Root: fault.Infra}},
		"an outage is taken as infra": {fault.Outage, 1, at, retry.Verdict{State: message.Failed, Class: fault.Infra, Root: fault.Infra, Next: at.Add(time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, retry.Defaults().Failed(c.class, c.attempts, c.started, at))
		})
	}
}

func TestUnsupportedMayGiveUpSooner(t *testing.T) {
	t.Parallel()
	p := retry.Defaults()
	p.UnsupportedAttempts = 1
	at := time.Now()
	require.Equal(t, message.Dead, p.Failed(fault.Unsupported, 1, at, at).State)
	require.Equal(t, message.Failed, p.Failed(fault.Infra, 1, at, at).State)
}

// Whatever the policy, pauses never pass the cap, and a message is tried at most MaxAttempts times.
func TestNeverForever(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := retry.Policy{
			MaxAttempts:  rapid.IntRange(1, 100).Draw(t, "max"),
			Backoff:      rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "pause")) }), 1, 8).Draw(t, "backoff"),
			BackoffCap:   time.Minute,
			HeadDeadline: time.Hour,
		}
		require.NoError(t, p.Validate())
		at := time.Unix(0, 0)
		for n := 1; ; n++ {
			v := p.Failed(fault.Infra, n, at, at)
			if v.State == message.Dead {
				require.Equal(t, p.MaxAttempts, n)
				return
			}
			require.True(t, v.Next.After(at) && v.Next.Sub(at) <= p.BackoffCap)
		}
	})
}

func TestValidateListsEverything(t *testing.T) {
	t.Parallel()
	err := retry.Policy{MaxAttempts: 0, UnsupportedAttempts: -1, Backoff: []time.Duration{-1}}.Validate()
	for _, key := range []string{"max-attempts", "unsupported-attempts", "backoff:", "backoff-cap", "head-deadline"} {
		require.ErrorContains(t, err, key)
	}
}
