package dbserver

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// tempDir is a folder that goes with this process: Stop removes it, and when nobody could, the next start does.
type tempDir struct {
	path  string
	owner *os.File // locked as long as we live
}

// ownerFile is in each temporary folder; whoever can lock it knows that the folder's process is gone.
const ownerFile = "owner"

// newTempDir makes a folder for a server of this name, and removes those left behind by processes that were killed.
func newTempDir(name string) (*tempDir, error) {
	pattern := "msgx-" + name + "-*"
	if err := sweep(filepath.Join(os.TempDir(), pattern)); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, err
	}
	d := &tempDir{path: path}
	// The file gets its name once it is locked, so that nobody finds it unlocked meanwhile.
	unnamed := filepath.Join(path, ownerFile+".new")
	if d.owner, err = os.Create(unnamed); err == nil {
		err = errors.Join(syscall.Flock(int(d.owner.Fd()), syscall.LOCK_EX), os.Rename(unnamed, filepath.Join(path, ownerFile)))
	}
	if err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

func (d *tempDir) remove() error {
	err := os.RemoveAll(d.path)
	if d.owner != nil {
		err = errors.Join(err, d.owner.Close())
	}
	return err
}

// sweep removes the folders whose owner is gone. Those of other users are theirs to remove.
func sweep(pattern string) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, path := range found {
		owner, err := os.Open(filepath.Join(path, ownerFile))
		if err != nil {
			continue
		}
		if syscall.Flock(int(owner.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = os.RemoveAll(path)
		}
		if err := errors.Join(err, owner.Close()); err != nil {
			return err
		}
	}
	return nil
}
