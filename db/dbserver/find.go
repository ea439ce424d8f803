package dbserver

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CacheDir is where data and unpacked programs are kept between runs: $MSGX_CACHE, else msgexchange below the user's
// cache folder. As root it is /var/cache/msgexchange, which the unprivileged user of the servers can reach.
func CacheDir() (string, error) {
	if dir := os.Getenv("MSGX_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/cache/msgexchange", nil
	}
	dir := os.Getenv("XDG_CACHE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cache folder: %w", err)
		}
		dir = filepath.Join(home, ".cache")
	}
	return filepath.Join(dir, "msgexchange"), nil
}

// unpackedRoot is the folder below the cache into which "make" unpacks Debian packages with dpkg -x.
const unpackedRoot = "root"

// find looks for a folder that holds all programs: PATH first, then the usual places, newest version first, then the
// cache. The places are patterns below / and below the unpacked root.
func find(product string, programs, places []string) (string, error) {
	var dirs []string
	if path, err := exec.LookPath(programs[0]); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil { // so that tools beside the real one are found
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	roots := []string{"/"}
	if cache, err := CacheDir(); err == nil {
		roots = append(roots, filepath.Join(cache, unpackedRoot))
	}
	for _, root := range roots {
		for _, place := range places {
			found, err := filepath.Glob(filepath.Join(root, place))
			if err != nil {
				return "", fmt.Errorf("%s: %w", product, err)
			}
			slices.SortFunc(found, newestFirst)
			dirs = append(dirs, found...)
		}
	}
	for _, dir := range dirs {
		if holds(dir, programs) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s is %w: install it (on Debian: apt-get install %s) or put its programs on PATH", product, ErrNotInstalled, product)
}

// newestFirst sorts …/9.6/bin after …/15/bin.
func newestFirst(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) }

// versionIn is the first number among the parts of path, "15" in /usr/lib/postgresql/15/bin or postgresql@15; else 0.
func versionIn(path string) float64 {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '@' }) {
		if v, err := strconv.ParseFloat(part, 64); err == nil {
			return v
		}
	}
	return 0
}

func holds(dir string, programs []string) bool {
	return !slices.ContainsFunc(programs, func(p string) bool {
		info, err := os.Stat(filepath.Join(dir, p))
		return err != nil || info.IsDir()
	})
}

// environment is ours without what would redirect the programs, plus the libraries beside unpacked ones.
func environment(binDir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "MYSQL") || strings.HasPrefix(kv, "LC_") ||
			strings.HasPrefix(kv, "TZ=") || strings.HasPrefix(kv, "TMPDIR=") || strings.HasPrefix(kv, "LANG")
	})
	env = append(env, "LC_ALL=C")
	cache, err := CacheDir()
	root := filepath.Join(cache, unpackedRoot)
	if err != nil || !strings.HasPrefix(binDir, root+string(filepath.Separator)) {
		return env
	}
	libs, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-*"))
	if err != nil {
		return env
	}
	libs = append(libs, filepath.Join(root, "usr/lib"))
	return append(env, "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
}
