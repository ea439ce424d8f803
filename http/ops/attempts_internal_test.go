package ops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/store"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

func TestAttempts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	fail := func(replay, n int32, state message.State) store.Failure {
		return store.Failure{At: at, Replay: replay, Attempt: n, State: state, Class: fault.Infra, Error: "refused"}
	}
	long := make([]store.Failure, store.MaxFailures)
	for i := range long {
		long[i] = fail(0, int32(i)+7, message.Failed)
	}
	for name, c := range map[string]struct {
		m      store.OpsMessage
		failed []store.Failure
		want   string
	}{
		"never tried":         {store.OpsMessage{State: "PENDING"}, nil, ""},
		"at once":             {store.OpsMessage{State: "SUCCEEDED", Attempts: 1, FinishedAt: &at}, nil, "0/1 SUCCEEDED"},
		"under way":           {store.OpsMessage{State: "PENDING", Attempts: 1}, nil, "0/1 UNDER_WAY"},
		"second time":         {store.OpsMessage{State: "SUCCEEDED", Attempts: 2, FinishedAt: &at}, []store.Failure{fail(0, 1, "FAILED")}, "0/1 FAILED, 0/2 SUCCEEDED"},
		"waits for its third": {store.OpsMessage{State: "FAILED", Attempts: 2}, []store.Failure{fail(0, 1, "FAILED"), fail(0, 2, "FAILED")}, "0/1 FAILED, 0/2 FAILED"},
		"killed the process": {
			store.OpsMessage{State: "DEAD", Attempts: 3, FinishedAt: &at},
			[]store.Failure{fail(0, 3, "DEAD")},
			"0/1 INTERRUPTED, 0/2 INTERRUPTED, 0/3 DEAD",
		},
		"cut short, then under way": {store.OpsMessage{State: "FAILED", Attempts: 3}, []store.Failure{fail(0, 1, "FAILED")}, "0/1 FAILED, 0/2 INTERRUPTED, 0/3 UNDER_WAY"},
		"put back and done": {
			store.OpsMessage{State: "SUCCEEDED", Attempts: 1, ReplayCount: 1, FinishedAt: &at},
			[]store.Failure{fail(0, 1, "FAILED"), fail(0, 2, "DEAD")},
			"0/1 FAILED, 0/2 DEAD, 1/1 SUCCEEDED",
		},
		"put back, not tried yet": {store.OpsMessage{State: "PENDING", ReplayCount: 1}, []store.Failure{fail(0, 1, "DEAD")}, "0/1 DEAD"},
		"skipped":                 {store.OpsMessage{State: "SKIPPED", Attempts: 1, FinishedAt: &at}, nil, "0/1 SKIPPED"},
	} {
		var got []string
		for _, a := range attempts(c.m, c.failed) {
			got = append(got, fmt.Sprintf("%d/%d %s", a.Replay, a.Attempt, a.Result))
			require.Equal(t, a.Result == tryUnderWay || a.Result == tryInterrupted, a.At == nil, name)
		}
		require.Equal(t, c.want, strings.Join(got, ", "), name)
	}
	require.Len(t, attempts(store.OpsMessage{State: "FAILED", Attempts: store.MaxFailures + 6}, long), store.MaxFailures,
		"what is no longer on record is not told to have been interrupted")
}
