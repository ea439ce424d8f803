package access_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/http/access"
)

func TestPeer(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}
	cases := []struct {
		name      string
		remote    string
		forwarded []string
		want      string
	}{
		{"direct", "203.0.113.9:1", nil, "203.0.113.9"},
		{"a stranger's header does not count", "203.0.113.9:1", []string{"10.0.0.1"}, "203.0.113.9"},
		{"a proxy's does", "192.0.2.1:1", []string{"10.0.0.1"}, "10.0.0.1"},
		{"what the caller wrote before it does not", "192.0.2.1:1", []string{"10.0.0.1, 203.0.113.9"}, "203.0.113.9"},
		{"nor on a line of its own", "192.0.2.1:1", []string{"10.0.0.1", "203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "192.0.2.1:1", []string{"10.0.0.1, 203.0.113.9, 192.0.2.2"}, "203.0.113.9"},
		{"with port", "192.0.2.1:1", []string{"203.0.113.9:4000"}, "203.0.113.9"},
		{"IPv6 in brackets", "[2001:db8::1]:1", []string{"[2001:db8::9]:4000"}, "2001:db8::9"},
		{"mapped IPv4", "[::ffff:192.0.2.1]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no header: the proxy itself", "192.0.2.1:1", nil, "192.0.2.1"},
		{"nonsense from a proxy", "192.0.2.1:1", []string{"10.0.0.1, unknown"}, "invalid IP"},
		{"an empty last hop", "192.0.2.1:1", []string{"10.0.0.1,"}, "invalid IP"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = c.remote
			for _, f := range c.forwarded {
				r.Header.Add("X-Forwarded-For", f)
			}
			require.Equal(t, c.want, access.Peer(r, proxies).String())
		})
	}
}

// tokens are a file and a clock that both move on by hand.
type tokens struct {
	t    *testing.T
	path string
	now  time.Time
	log  bytes.Buffer
	*access.Tokens
}

func openTokens(t *testing.T, text string) *tokens {
	t.Helper()
	f := &tokens{t: t, path: filepath.Join(t.TempDir(), "tokens"), now: time.Unix(1_800_000_000, 0)}
	f.write(text)
	var err error
	f.Tokens, err = access.OpenTokens(f.path, func() time.Time { return f.now }, slog.New(slog.NewTextHandler(&f.log, nil)))
	require.NoError(t, err)
	return f
}

func (f *tokens) write(text string) {
	f.t.Helper()
	f.now = f.now.Add(time.Minute)
	require.NoError(f.t, os.WriteFile(f.path, []byte(text), 0o600))
	require.NoError(f.t, os.Chtimes(f.path, f.now, f.now))
}

func (f *tokens) role(token string) access.Role {
	_, role, _ := f.Find("", token)
	return role
}

func TestTokens_followTheFile(t *testing.T) {
	t.Parallel()
	f := openTokens(t, "# who may what\n\nalpha anna reader # since May\nb#ta bert operator\n")
	require.Equal(t, access.Reader, f.role("alpha"))
	require.Equal(t, access.Operator, f.role("b#ta"), "a number sign within a token belongs to it")
	require.Equal(t, access.Anyone, f.role(""))
	require.Equal(t, access.Anyone, f.role("alph"))

	f.write("gamma gina sender\n")
	require.Equal(t, access.Sender, f.role("gamma"))
	require.Equal(t, access.Anyone, f.role("alpha"), "taken back")

	f.write("gamma gina emperor\n")
	require.Equal(t, access.Sender, f.role("gamma"), "a slip of the pen changes nothing")
	require.Contains(t, f.log.String(), "tokens file unusable")
	require.NotContains(t, f.log.String(), "gamma")

	require.NoError(t, os.Remove(f.path))
	f.now = f.now.Add(time.Minute)
	require.Equal(t, access.Anyone, f.role("gamma"), "a file that has gone takes its tokens with it")

	f.write("delta dora sender\n")
	require.Equal(t, access.Sender, f.role("delta"))
}

func TestOpenTokens_saysEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("secret1 anna\nsecret2 bert king\nsecret3 carl reader\nsecret3 dora sender\n"), 0o600))
	_, err := access.OpenTokens(path, time.Now, slog.New(slog.DiscardHandler))
	for _, want := range []string{"line 1", "line 2", "line 4"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret")
	_, err = access.OpenTokens(path+".not", time.Now, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	l := access.NewLimiter(1, 2)
	require.True(t, l.Allow("a", now))
	require.True(t, l.Allow("a", now))
	require.False(t, l.Allow("a", now))
	require.True(t, l.Allow("b", now))
	require.True(t, l.Allow("a", now.Add(time.Second)))
	require.True(t, access.NewLimiter(0, 1).Allow("a", now), "0 is no limit")
}

// Ten thousand callers have buckets of their own; those who come after share one, until the others have gone quiet.
func TestLimiter_isBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	l := access.NewLimiter(1, 1)
	for i := range 10_000 {
		require.True(t, l.Allow(fmt.Sprint("early ", i), now))
	}
	require.True(t, l.Allow("late 1", now))
	require.False(t, l.Allow("late 2", now), "one bucket for all of them")
	require.False(t, l.Allow("early 7", now), "still its own")
	require.True(t, l.Allow("late 2", now.Add(2*time.Second)), "room again")
	require.True(t, l.Allow("late 3", now.Add(2*time.Second)))
}

func TestCaller_keyOfIPv6IsTheSite(t *testing.T) {
	t.Parallel()
	key := func(remote string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = remote
		return (&access.Gate{}).Identify(r).Key()
	}
	require.Equal(t, key("[2001:db8::1]:1"), key("[2001:db8::2]:1"))
	require.NotEqual(t, key("203.0.113.1:1"), key("203.0.113.2:1"))
}
