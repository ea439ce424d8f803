package jobs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs"
)

var wake = jobs.Wake{Lane: "default", Epoch: 7}

// kinds are the stored names: a job in a database may be older than this program, so none is ever renamed or dropped.
func kinds() map[string]jobs.Role {
	return map[string]jobs.Role{
		"poll_inbox":   jobs.RolePoll,
		"process_head": jobs.RoleHead,
		"deliver_msg":  jobs.RoleMsg,
		"flush_schd":   jobs.RoleSchd,
		"backfill":     jobs.RoleBackfill,
		"send_request": jobs.RoleRequest,
	}
}

// Each kind: the role's own queue, one open job for the same arguments whatever it is doing, and attempts for long outages.
func TestKinds(t *testing.T) {
	t.Parallel()
	require.Len(t, kinds(), len(jobs.AllRoles()))
	for kind, role := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args, ok := jobs.For(role, wake).(jobs.Args)
			require.True(t, ok)
			require.Equal(t, kind, args.Kind())
			require.Equal(t, role, args.Role())
			require.Equal(t, wake, args.For())

			open := []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
			}
			got := args.InsertOpts()
			require.ElementsMatch(t, open, got.UniqueOpts.ByState, "neither finished jobs nor discarded ones keep a wake-up out")
			got.UniqueOpts.ByState = nil
			require.Equal(t, river.InsertOpts{Queue: string(role), MaxAttempts: 1000, UniqueOpts: river.UniqueOpts{ByArgs: true}}, got)
		})
	}
}

// TestArgs: testdata/args/KIND.N.json is the N-th form in which arguments of a kind have been stored. All are read for ever;
// the last is how they are written. A new form is a new file.
func TestArgs(t *testing.T) {
	t.Parallel()
	last := map[string][]byte{}
	files, err := filepath.Glob("testdata/args/*.json")
	require.NoError(t, err)
	for _, file := range files { // ascending, so the last form comes last
		kind, _, _ := strings.Cut(filepath.Base(file), ".")
		if clockwork()[kind] != nil {
			continue
		}
		role, known := kinds()[kind]
		require.True(t, known, "%s: no such kind", file)
		sample, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, jobs.For(role, wake), decode(t, role, sample), file)
		last[kind] = bytes.TrimSpace(sample)
	}
	for kind, role := range kinds() {
		written, err := json.Marshal(jobs.For(role, wake))
		require.NoError(t, err)
		require.Equal(t, string(last[kind]), string(written), "%s is written in a form that has no sample", kind)
		more := strings.Replace(string(written), "{", `{"later":{"x":[1]},`, 1)
		require.Equal(t, jobs.For(role, wake), decode(t, role, []byte(more)), "%s as a newer version may write it", kind)
	}
}

// decode reads arguments as River does.
func decode(t *testing.T, role jobs.Role, b []byte) river.JobArgs {
	t.Helper()
	switch role {
	case jobs.RolePoll:
		return into[jobs.PollInbox](t, b)
	case jobs.RoleHead:
		return into[jobs.ProcessHead](t, b)
	case jobs.RoleMsg:
		return into[jobs.DeliverMsg](t, b)
	case jobs.RoleSchd:
		return into[jobs.FlushSchd](t, b)
	case jobs.RoleBackfill:
		return into[jobs.Backfill](t, b)
	case jobs.RoleRequest:
		return into[jobs.SendRequest](t, b)
	}
	require.Fail(t, "no such role", "%s", role)
	return nil
}

func into[T river.JobArgs](t *testing.T, b []byte) T {
	t.Helper()
	var args T
	require.NoError(t, json.Unmarshal(b, &args))
	return args
}

func TestForUnknownRole(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { jobs.For("nobody", wake) })
}

// clockwork are the kinds without a role: what is done by the clock.
func clockwork() map[string]river.JobArgs {
	return map[string]river.JobArgs{"maintenance_tick": jobs.Tick{}, "maintain": jobs.Maintain{Task: "archive"}}
}

func TestClockwork(t *testing.T) {
	t.Parallel()
	for kind, args := range clockwork() {
		require.Equal(t, kind, args.Kind())
		sample, err := os.ReadFile("testdata/args/" + kind + ".1.json")
		require.NoError(t, err)
		written, err := json.Marshal(args)
		require.NoError(t, err)
		require.JSONEq(t, string(sample), string(written))
		opts, ok := args.(river.JobArgsWithInsertOpts)
		require.True(t, ok)
		require.Equal(t, jobs.QueueMaintenance, opts.InsertOpts().Queue)
		require.True(t, opts.InsertOpts().UniqueOpts.ByArgs)
	}
	require.Equal(t, jobs.Maintain{Task: "archive"}, into[jobs.Maintain](t, []byte(`{"task":"archive","later":1}`)))
}
