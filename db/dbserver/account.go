package dbserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user a server runs as when we are root.
type account struct{ uid, gid uint32 }

// unprivileged finds whom to drop to: nobody needs to (nil) unless we are root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("we are root, and there is neither a user postgres nor a user nobody to run the server as")
}

// reaches says what keeps the account from dir: a folder above it that is closed to others.
func (a *account) reaches(dir string) error {
	if a == nil {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if mine := ok && stat.Uid == a.uid; !mine && info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("we are root and the server runs as user id %d, which may not enter %s: choose another folder for %s", a.uid, above, dir)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// attributes put the child into a process group of its own, under the account, and let it get sig when we die.
func attributes(a *account, sig syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	dieWithParent(attr, sig)
	return attr
}

// keptPassword reads the password in file, or makes one.
func keptPassword(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err == nil {
		return string(b), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	pw := rand.Text()
	return pw, os.WriteFile(file, []byte(pw), 0o600)
}
