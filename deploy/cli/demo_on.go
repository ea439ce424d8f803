//go:build demo

package cli

import (
	"context"
	"errors"
)

// Run runs the whole system until ctx ends or the duration is over.
func (demo) Run(context.Context, *Process) error {
	return errors.New("demo: not wired")
}
