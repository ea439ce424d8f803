//go:build !demo

package cli

import "errors"

// Run says that this build has no demo, so that nothing of it is in the product.
func (demo) Run() error {
	return &exitError{code: exitUsage, err: errors.New("demo is only in builds with tag demo: run `make demo`")}
}
