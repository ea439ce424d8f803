package cli

import (
	"fmt"

	"msgexchange/deploy/observe"
)

// version prints what this program is.
type version struct{}

// Run prints one line: name, version, commit, Go.
func (version) Run(p *Process) error {
	b := observe.NewBuild(p.Version, p.Commit)
	_, err := fmt.Fprintf(p.Stdout, "msgexchange %s commit %s %s\n", b.Version, b.Revision, b.Go)
	return err
}
