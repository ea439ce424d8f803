package cli

import "time"

// demo runs everything on this machine. Its Run is in a build with tag demo, or one that says that this is none.
type demo struct {
	Duration time.Duration `help:"End by itself after so long, with a summary; without it, run until stopped." placeholder:"DURATION"`
	traffic
	JSON bool `help:"Print the summary as JSON."`
}

// Help says what the command needs.
func (demo) Help() string {
	return `Starts a private PostgreSQL from the programs on this machine, a mailbox and a Kafka inside this process, a simulated
airport that fills the mailbox, and the workers. Needs no configuration and leaves services that run already alone.

Prints a line of progress and the addresses to look at. Ends with 0 when the numbers add up: every message written was
processed and marked, every event was sent.`
}
