//go:build !linux

package dbserver

import "syscall"

// dieWithParent does nothing: only Linux knows such a signal.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
