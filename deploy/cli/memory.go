package cli

import (
	"math"
	"runtime/debug"
)

// spendMemory lets the collector run less often than Go's default would: a backlog makes 50 KB of garbage a message beside
// some 20 MB that live, and collecting after every 20 MB of it takes a sixth of the program's processor time. The limit
// holds where a large message is in hand: below it a process needs no more than 250 MB, and one whose living data are more
// only loses the advantage. GOGC and GOMEMLIMIT, set by whoever starts the process, have their way.
func spendMemory() {
	const (
		growth = 200 // per cent of what lives
		usual  = 100 // Go's own
		limit  = 200 << 20
	)
	if was := debug.SetGCPercent(growth); was != usual {
		debug.SetGCPercent(was)
	}
	if was := debug.SetMemoryLimit(limit); was != math.MaxInt64 {
		debug.SetMemoryLimit(was)
	}
}
