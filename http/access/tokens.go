package access

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tokens are the tokens of a file, one "token name role" a line, read again when the file changes. Only hashes are kept.
// Safe for concurrent use.
type Tokens struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	version fileVersion
	list    []token
}

type token struct {
	hash [sha256.Size]byte
	name string
	role Role
}

type fileVersion struct {
	modified time.Time
	size     int64
}

// checkEvery bounds how often the file is looked at.
const checkEvery = time.Second

// OpenTokens reads the file at path; a file that is missing or wrong is an error. An empty path means no tokens.
func OpenTokens(path string, now func() time.Time, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, log: log, now: now, checked: now()}
	if path == "" {
		return t, nil
	}
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("tokens file: %w", err)
	}
	return t, nil
}

// Find looks a token up. Name, when given (HTTP Basic), must be the token's. It takes the same time for every token.
func (t *Tokens) Find(name, secret string) (owner string, role Role, ok bool) {
	hash := sha256.Sum256([]byte(secret))
	var found token
	for _, candidate := range t.current() {
		if subtle.ConstantTimeCompare(candidate.hash[:], hash[:]) == 1 {
			found = candidate
		}
	}
	if found.name == "" || name != "" && name != found.name {
		return "", Anyone, false
	}
	return found.name, found.role, true
}

// Any says whether some token has the role or a higher one.
func (t *Tokens) Any(role Role) bool {
	return slices.ContainsFunc(t.current(), func(c token) bool { return c.role.Includes(role) })
}

// current reads the file again if it has changed. A file that has gone takes its tokens with it; one that cannot be
// understood changes nothing, so that a slip of the pen does not lock everybody out.
func (t *Tokens) current() []token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" || t.now().Sub(t.checked) < checkEvery {
		return t.list
	}
	t.checked = t.now()
	err := t.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(t.list) > 0 {
			t.log.Error("tokens file gone", "error", err)
		}
		t.list, t.version = nil, fileVersion{}
	case err != nil:
		t.log.Error("tokens file unusable", "error", err)
	}
	return t.list
}

// read is a no-op while the file is the one read last, also when that one was wrong.
func (t *Tokens) read() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	version := fileVersion{modified: info.ModTime(), size: info.Size()}
	if version == t.version {
		return nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	t.version = version
	list, err := parseTokens(f)
	if err != nil {
		return err
	}
	t.list = list
	return nil
}

// parseTokens reports every bad line at once, by its number and never with its text.
func parseTokens(r io.Reader) ([]token, error) {
	var list []token
	var bad []error
	seen := map[[sha256.Size]byte]bool{}
	lines := bufio.NewScanner(r)
	for no := 1; lines.Scan(); no++ {
		parts := strings.Fields(lines.Text())
		if i := slices.IndexFunc(parts, func(s string) bool { return strings.HasPrefix(s, "#") }); i >= 0 {
			parts = parts[:i] // a comment
		}
		if len(parts) == 0 {
			continue
		}
		const want = 3
		if len(parts) != want {
			bad = append(bad, fmt.Errorf("line %d: want \"token name role\", found %d words", no, len(parts)))
			continue
		}
		role, err := parseRole(parts[2])
		hash := sha256.Sum256([]byte(parts[0]))
		switch {
		case err != nil:
			bad = append(bad, fmt.Errorf("line %d: %w", no, err))
		case seen[hash]:
			bad = append(bad, fmt.Errorf("line %d: the token stands there twice", no))
		default:
			seen[hash] = true
			list = append(list, token{hash: hash, name: parts[1], role: role})
		}
	}
	return list, errors.Join(append(bad, lines.Err())...)
}
