//go:build faults

package request

import "os"

// sentHook ends the process between the mailbox's commit and ours when MSGX_FAULT_EXIT_SENT is set.
func sentHook() {
	if os.Getenv("MSGX_FAULT_EXIT_SENT") != "" {
		os.Exit(137)
	}
}
