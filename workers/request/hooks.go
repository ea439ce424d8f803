//go:build !faults

package request

// The hook exists only in builds with the tag faults.
func sentHook() {}
