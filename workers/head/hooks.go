//go:build !faults

package head

import "msgexchange/db/store"

// The hooks of contract §8.21 exist only in builds with the tag faults.
func exitHook([]store.Unfinished) error { return nil }

func infraHook(store.Unfinished) error { return nil }
