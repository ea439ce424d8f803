package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/replay"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	dead := replay.Candidate{State: message.Dead, Class: fault.Exhausted, Text: true}
	reused := replay.Candidate{State: message.Skipped, Skip: "duplicate-of:4", Reuse: message.ReuseContent, Text: true}
	with := func(c replay.Candidate, f func(*replay.Candidate)) replay.Candidate { f(&c); return c }
	for name, c := range map[string]struct {
		candidate replay.Candidate
		force     bool
		why       string
		takes     bool
	}{
		"exhausted":                 {dead, false, "", false},
		"being marked":              {with(dead, func(c *replay.Candidate) { c.Marking = true }), true, "is being written", false},
		"text gone":                 {with(dead, func(c *replay.Candidate) { c.Text = false }), true, "no longer kept", false},
		"ids begun anew":            {with(dead, func(c *replay.Candidate) { c.Closed = true }), true, "earlier generation", false},
		"pending":                   {replay.Candidate{State: message.Pending}, true, "not finished", false},
		"in backoff":                {replay.Candidate{State: message.Failed}, true, "not finished", false},
		"succeeded":                 {replay.Candidate{State: message.Succeeded}, true, "succeeded", false},
		"ignored":                   {replay.Candidate{State: message.Skipped, Skip: "ignored:LDM-*"}, true, "ignored:LDM-*", false},
		"a true duplicate":          {with(reused, func(c *replay.Candidate) { c.Reuse = message.ReuseDuplicate }), true, "duplicate-of:4", false},
		"another body":              {reused, false, "force", false},
		"another body, by force":    {reused, true, "", true},
		"by force but no text left": {with(reused, func(c *replay.Candidate) { c.Text = false }), true, "no longer kept", false},
	} {
		v := replay.Judge(c.candidate, c.force)
		require.Equal(t, c.takes, v.Takes, name)
		if c.why == "" {
			require.Empty(t, v.Why, name)
			continue
		}
		require.Contains(t, v.Why, c.why, name)
	}
	for _, class := range fault.AllClasses() {
		v := replay.Judge(replay.Candidate{State: message.Dead, Class: class, Text: true}, true)
		require.Equal(t, class.Replayable(), v.Why == "", class)
	}
}
