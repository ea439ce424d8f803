package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/http/compat"
	"msgexchange/http/server"
	"msgexchange/jobs/fault"
)

const okMessage = `<MSG><META><SNDR>AODB</SNDR></META></MSG>`

func TestAccess(t *testing.T) {
	t.Parallel()
	basic := func(name, token string) func(*http.Request) {
		return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+token)))
	}
	none := func(*http.Request) {}
	cases := []struct {
		name   string
		from   string
		path   string
		who    func(*http.Request)
		status int
	}{
		{"anybody may ask whether we live", stranger, "/healthz", none, 200},
		{"also with a wrong token", stranger, "/healthz", bearer("wrong"), 200},
		{"a stranger learns nothing else", stranger, "/readyz", none, 401},
		{"no metrics", stranger, "/metrics", none, 401},
		{"no flights", stranger, "/all/flights", none, 401},
		{"not even what exists", stranger, "/nowhere", none, 401},
		{"wrong token", stranger, "/flights", bearer("wrong"), 401},
		{"wrong scheme", stranger, "/flights", header("Authorization", "Digest x"), 401},
		{"reader", stranger, "/flights", bearer("r-token"), 200},
		{"Basic with name and token", stranger, "/flights", basic("rita", "r-token"), 200},
		{"Basic with another's name", stranger, "/flights", basic("olga", "r-token"), 401},
		{"trusted peer reads", trusted, "/ops/summary", none, 200},
		{"loopback of IPv6 reads", "[::1]:1", "/flights", none, 200},
		{"IPv4 within IPv6 is the IPv4", "[::ffff:10.1.2.3]:1", "/flights", none, 200},
		{"trusted peer with a wrong token", trusted, "/flights", bearer("wrong"), 401},
		{"trusted peer finds nothing there", trusted, "/nowhere", none, 404},
		{"trusted peer is no operator", trusted, "/riverui/", none, 401},
		{"reader is no operator", trusted, "/riverui/", bearer("r-token"), 403},
		{"sender is no operator", stranger, "/riverui/api/jobs", bearer("s-token"), 403},
		{"operator", stranger, "/riverui/", bearer("o-token"), 200},
		{"operator in a browser", trusted, "/riverui", basic("olga", "o-token"), 200},
		{"forged address", stranger, "/flights", header("X-Forwarded-For", "10.1.2.3"), 401},
		{"forged real ip", stranger, "/flights", header("X-Real-IP", "10.1.2.3"), 401},
		{"listed proxy speaks for a trusted peer", proxy, "/flights", header("X-Forwarded-For", "10.1.2.3"), 200},
		{"listed proxy speaks for a stranger who forged", proxy, "/flights", header("X-Forwarded-For", "10.1.2.3, 203.0.113.9"), 401},
		{"listed proxy passed nonsense on", proxy, "/flights", header("X-Forwarded-For", "10.1.2.3, unknown"), 401},
		{"listed proxy for itself is no trusted peer", proxy, "/flights", none, 401},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := newWorld(t).ask(http.MethodGet, c.path, c.from, c.who)
			require.Equal(t, c.status, got.Code, got.Body)
			if c.status == http.StatusUnauthorized {
				require.Len(t, got.Header().Values("WWW-Authenticate"), 2)
			}
		})
	}
}

// The first line is the caller's own, the second the proxy's: gin alone would believe the first (gin#2473).
func TestK28_forgedFirstForwardedLine(t *testing.T) {
	t.Parallel()
	got := newWorld(t).ask(http.MethodGet, "/flights", proxy,
		header("X-Forwarded-For", "10.1.2.3"), header("X-Forwarded-For", "203.0.113.9"))
	require.Equal(t, http.StatusUnauthorized, got.Code)
}

func TestSend_answersByteForByte(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		set    []func(*http.Request)
		err    error
		status int
		body   string
	}{
		{"stored", []func(*http.Request){body("text/xml", okMessage)}, nil, 200, `{"is_success":true,"body":123}`},
		{"application/xml", []func(*http.Request){body("application/xml; charset=UTF-8", okMessage)}, nil, 200, `{"is_success":true,"body":123}`},
		{"text/plain", []func(*http.Request){body("text/plain", okMessage)}, nil, 200, `{"is_success":true,"body":123}`},
		{"bare id", []func(*http.Request){body("text/xml", okMessage), header("Accept", "text/plain")}, nil, 200, `123`},
		{"identity is no encoding", []func(*http.Request){body("text/xml", okMessage), header("Content-Encoding", "identity")}, nil, 200, `{"is_success":true,"body":123}`},
		{
			"empty",
			[]func(*http.Request){body("text/xml", " \r\n")},
			nil, 400,
			`{"is_success":false,"err_code":"EMPTY_BODY","err_msg":"the body is empty"}`,
		},
		{
			"gzip",
			[]func(*http.Request){body("text/xml", "\x1f\x8b"), header("Content-Encoding", "gzip")},
			nil, 415,
			`{"is_success":false,"err_code":"UNSUPPORTED_MEDIA_TYPE","err_msg":"the body must not be compressed"}`,
		},
		{
			"json",
			[]func(*http.Request){body("application/json", `{}`)},
			nil, 415,
			`{"is_success":false,"err_code":"UNSUPPORTED_MEDIA_TYPE","err_msg":"send text/xml, application/xml or text/plain"}`,
		},
		{
			"no media type",
			[]func(*http.Request){body("", okMessage)},
			nil, 415,
			`{"is_success":false,"err_code":"UNSUPPORTED_MEDIA_TYPE","err_msg":"send text/xml, application/xml or text/plain"}`,
		},
		{
			"mailbox away",
			[]func(*http.Request){body("text/xml", okMessage)},
			fault.New(fault.Outage, "insert", "refused"), 503,
			`{"is_success":false,"err_code":"MAILBOX_UNAVAILABLE","err_msg":"the mailbox is not available; try again"}`,
		},
		{
			"mailbox takes nothing so large",
			[]func(*http.Request){body("text/xml", okMessage)},
			compat.ErrTooLarge, 413,
			`{"is_success":false,"err_code":"TOO_LARGE","err_msg":"the mailbox takes no message of this size"}`,
		},
		{
			"role too low",
			[]func(*http.Request){body("text/xml", okMessage), bearer("r-token")},
			nil, 403,
			`{"is_success":false,"err_code":"FORBIDDEN","err_msg":"the role sender is needed, the token has reader"}`,
		},
		{
			"unknown token",
			[]func(*http.Request){body("text/xml", okMessage), bearer("x")},
			nil, 401,
			`{"is_success":false,"err_code":"UNAUTHORIZED","err_msg":"the token is not known"}`,
		},
		{
			"another site's page",
			[]func(*http.Request){body("text/plain", okMessage), header("Sec-Fetch-Site", "cross-site")},
			nil, 403,
			`{"is_success":false,"err_code":"FORBIDDEN","err_msg":"pages of other sites may not write here"}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mailbox.err = c.err
			got := w.ask(http.MethodPost, "/cminmsgs/send", trusted, c.set...)
			require.Equal(t, c.body, got.Body.String())
			require.Equal(t, c.status, got.Code)
			if c.status != http.StatusOK {
				require.Empty(t, w.mailbox.texts, "nothing is written")
			}
		})
	}
}

func TestSend_malformed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not closed": `<MSG><META>`, "other root": `<MESSAGE/>`, "mislabelled": "<MSG>\xff</MSG>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			got := w.ask(http.MethodPost, "/cminmsgs/send", trusted, body("text/xml", text))
			require.Equal(t, http.StatusBadRequest, got.Code)
			require.Contains(t, got.Body.String(), `"err_code":"MALFORMED_XML"`)
			require.Empty(t, w.mailbox.texts)
		})
	}
}

func TestSend_inShadow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *server.Config, d *server.Deps) { d.Sender = &compat.Sender{Shadow: true} })
	got := w.ask(http.MethodPost, "/cminmsgs/send", trusted, body("text/xml", okMessage))
	require.Equal(t, http.StatusForbidden, got.Code)
	require.Contains(t, got.Body.String(), `"err_code":"SHADOW_MODE"`)
}

// A real connection: 11 MB with and without a length, and the answer arrives although the body is not taken.
func TestK28_elevenMegabytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := httptest.NewServer(w.handler)
	defer ts.Close()
	large := `<MSG>` + strings.Repeat(" ", 11_000_000) + `</MSG>`
	for name, content := range map[string]io.Reader{
		"with a length": strings.NewReader(large),
		"chunked":       io.MultiReader(strings.NewReader(large)), // http sees no length
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+"/cminmsgs/send", content)
		require.NoError(t, err, name)
		r.Header.Set("Content-Type", "text/xml")
		got, err := ts.Client().Do(r)
		require.NoError(t, err, name)
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err, name)
		require.NoError(t, got.Body.Close())
		require.Equal(t, http.StatusRequestEntityTooLarge, got.StatusCode, name)
		require.JSONEq(t, `{"is_success":false,"err_code":"TOO_LARGE","err_msg":"the body is larger than this service accepts"}`, string(text), name)
	}
	require.Empty(t, w.mailbox.texts)
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config, _ *server.Deps) { c.RateLimit, c.RateBurst = 0.001, 2 })
	for range 2 {
		require.Equal(t, http.StatusOK, w.ask(http.MethodGet, "/flights", trusted).Code)
	}
	got := w.ask(http.MethodPost, "/cminmsgs/send", trusted, body("text/xml", okMessage))
	require.Equal(t, http.StatusTooManyRequests, got.Code)
	require.JSONEq(t, `{"is_success":false,"err_code":"RATE_LIMITED","err_msg":"too many requests; slow down"}`, got.Body.String())
	require.NotEmpty(t, got.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, w.ask(http.MethodGet, "/healthz", trusted).Code, "whether we live is always answered")
	require.Equal(t, http.StatusOK, w.ask(http.MethodGet, "/flights", "10.9.9.9:1").Code, "others are not held up")
}

func TestK28_cancelFromAnotherSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cancel := func(set ...func(*http.Request)) int {
		return w.ask(http.MethodPost, "/riverui/api/jobs/cancel", trusted, set...).Code
	}
	require.Equal(t, http.StatusUnauthorized, cancel())
	require.Equal(t, http.StatusForbidden, cancel(bearer("o-token"), header("Sec-Fetch-Site", "cross-site")))
	require.Equal(t, http.StatusForbidden, cancel(bearer("o-token"), header("Origin", "https://evil.example")))
	require.Equal(t, http.StatusOK, cancel(bearer("o-token"), header("Sec-Fetch-Site", "same-origin")))
}

func TestFailures_saidInTheRoutesForm(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		err    error
		path   string
		status int
		body   string
	}{
		{
			"a problem", fault.New(fault.Outage, "read", "refused by db.internal"), "/flights", 503,
			`{"code":"UNAVAILABLE","detail":"a system this answer needs is not available; try again","status":503,"title":"Service Unavailable","type":"about:blank"}`,
		},
		{
			"a ResponseDto", errors.New("secret"), "/all/flights", 500,
			`{"is_success":false,"err_code":"INTERNAL","err_msg":"the request failed; the log says why"}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(_ *server.Config, d *server.Deps) { d.Flights = pages{fail: c.err} })
			got := w.ask(http.MethodGet, c.path, trusted)
			require.Equal(t, c.body, got.Body.String())
			require.Equal(t, c.status, got.Code)
		})
	}
}

func TestPanic_isInternalAndLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	w := newWorld(t, func(_ *server.Config, d *server.Deps) {
		d.Ops, d.Log = panicking{}, slog.New(slog.NewJSONHandler(&lines, nil))
	})
	got := w.ask(http.MethodGet, "/ops/summary", trusted)
	require.Equal(t, http.StatusInternalServerError, got.Code)
	require.NotContains(t, got.Body.String(), "defect")
	var line map[string]any
	require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], "a defect")
	require.Contains(t, line["error"], "fake_test.go")
}

func TestTornAnswer_endsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *server.Config, d *server.Deps) { d.Flights = torn{} })
	ts := httptest.NewUnstartedServer(w.handler)
	ts.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	ts.Start()
	defer ts.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/all/flights", http.NoBody)
	require.NoError(t, err)
	got, err := ts.Client().Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, got.Body.Close()) }()
	_, err = io.ReadAll(got.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.ask(http.MethodGet, "/flights", trusted).Header()
	require.Equal(t, "nosniff", got.Get("X-Content-Type-Options"))
	require.Equal(t, "DENY", got.Get("X-Frame-Options"))
	require.Equal(t, "no-store", got.Get("Cache-Control"))
	require.Contains(t, got.Get("Content-Security-Policy"), "default-src 'none'")
	ui := w.ask(http.MethodGet, "/riverui/", trusted, bearer("o-token")).Header()
	require.Contains(t, ui.Get("Content-Security-Policy"), "default-src 'self'")
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/refdata/SL%00ST", "/refdata/%ff", "/ops/maintenance/%00", "/nowhere/%00"} {
		require.Equal(t, http.StatusBadRequest, w.ask(http.MethodGet, path, trusted).Code, path)
		require.Equal(t, http.StatusUnauthorized, w.ask(http.MethodGet, path, stranger).Code, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, w.ask(http.MethodDelete, "/flights", trusted).Code)
	got := w.ask(http.MethodGet, "/flights/", trusted)
	require.Equal(t, http.StatusNotFound, got.Code)
	require.Equal(t, "application/problem+json", got.Header().Get("Content-Type"))
}

// Who asked for which flights stands in the access log; what does not belong there does not.
func TestAccessLog_ofFlightQueries(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	w := newWorld(t, func(_ *server.Config, d *server.Deps) { d.Log = slog.New(slog.NewJSONHandler(&lines, nil)) })
	w.ask(http.MethodGet, "/flights?gate=B12&token=hunter2&flno="+strings.Repeat("x", 5000), stranger, bearer("r-token"))
	var line struct {
		Msg, Level, Path, Query string
		Status                  int
		Caller                  struct{ Actor, Role, Peer string }
	}
	require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
	require.Equal(t, "http request", line.Msg)
	require.Equal(t, "INFO", line.Level)
	require.Equal(t, "/flights", line.Path)
	require.Contains(t, line.Query, "x")
	require.NotContains(t, lines.String(), "hunter2")
	require.NotContains(t, lines.String(), "r-token")
	require.Less(t, lines.Len(), 1000)
	require.Equal(t, http.StatusOK, line.Status)
	require.Equal(t, "rita", line.Caller.Actor)
	require.Equal(t, "reader", line.Caller.Role)
	require.Equal(t, "203.0.113.9", line.Caller.Peer)
}
