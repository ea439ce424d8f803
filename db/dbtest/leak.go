package dbtest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// NoLeaks gives the exit code of tests that have run, or 1 when goroutines outlive them:
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }
func NoLeaks(code int) int {
	if code != 0 {
		return code // a failed test ends in the middle, and its goroutines with nobody to stop them
	}
	if err := goleak.Find(endless()...); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		return 1
	}
	return 0
}

// endless are the goroutines that are meant to live as long as the process.
func endless() []goleak.Option {
	return []goleak.Option{
		// The ticker behind all meters of sarama's metrics: one a process, begun by the first client.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
	}
}
