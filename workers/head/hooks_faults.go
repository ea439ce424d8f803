//go:build faults

package head

import (
	"os"
	"strconv"
	"strings"

	"msgexchange/db/store"
	"msgexchange/jobs/fault"
)

// exitHook ends the process when the message of MSGX_FAULT_EXIT_ON is in hand: its attempt is committed, nothing is decoded.
func exitHook(batch []store.Unfinished) error {
	id, err := strconv.ParseInt(os.Getenv("MSGX_FAULT_EXIT_ON"), 10, 64) //nolint:forbidigo // a hook of test builds, no configuration
	if err != nil {
		return nil //nolint:nilerr // not set
	}
	for _, r := range batch {
		if r.Pos.ID == id {
			os.Exit(137)
		}
	}
	return nil
}

// infraHook fails the message of MSGX_FAULT_INFRA_ON=<id>:<n> as INFRA for its first n attempts.
func infraHook(r store.Unfinished) error {
	id, n, _ := strings.Cut(os.Getenv("MSGX_FAULT_INFRA_ON"), ":") //nolint:forbidigo // a hook of test builds, no configuration
	times, err := strconv.Atoi(n)
	if err != nil || id != strconv.FormatInt(r.Pos.ID, 10) || r.Attempts > times {
		return nil //nolint:nilerr // not set, or not for this try
	}
	return fault.New(fault.Infra, "decide", "made to fail by MSGX_FAULT_INFRA_ON, attempt %d of %d", r.Attempts, times)
}
