package server_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/http/access"
	"msgexchange/http/server"
)

// doors are all routes there are and what role each needs. Who adds a route decides here who may use it.
func doors() map[string]access.Role {
	all := map[string]access.Role{
		"GET /healthz": access.Anyone, "HEAD /healthz": access.Anyone, "HEAD /readyz": access.Reader,

		"GET /": access.Reader, "GET /readyz": access.Reader, "GET /metrics": access.Reader, "GET /openapi.json": access.Reader,
		"GET /all/flights": access.Reader, "GET /flights": access.Reader, "GET /flights/:flid": access.Reader, "GET /flights/:flid/history": access.Reader,
		"GET /refdata": access.Reader, "GET /refdata/:rtype": access.Reader,
		"GET /ops/summary": access.Reader, "GET /ops/messages": access.Reader, "GET /ops/messages/:id": access.Reader, "GET /ops/messages/:id/changes": access.Reader,
		"GET /ops/events": access.Reader, "GET /ops/events/:id": access.Reader, "GET /ops/holes": access.Reader, "GET /ops/requests": access.Reader,
		"GET /ops/consistency": access.Reader,
		"GET /ops/maintenance": access.Reader,

		"POST /cminmsgs/send": access.Sender, "POST /schd/sync": access.Sender,

		"GET /ops/audit": access.Operator, "POST /ops/replay": access.Operator, "POST /ops/events/replay": access.Operator,
		"POST /ops/backfill/resume": access.Operator, "POST /ops/requests": access.Operator, "POST /ops/lane/reseed": access.Operator,
		"POST /ops/maintenance/:task": access.Operator,
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		all[method+" /riverui"], all[method+" /riverui/*path"] = access.Operator, access.Operator
	}
	return all
}

// filledIn is a path that the route would serve.
func filledIn(path string) string {
	return strings.NewReplacer(":flid", "15", ":id", "1", ":task", "archive", ":rtype", "SLST", "*path", "api/jobs/cancel").Replace(path)
}

// K28: every route against every kind of caller.
func TestK28_doors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var routes []string
	for _, r := range w.handler.(*gin.Engine).Routes() {
		routes = append(routes, r.Method+" "+r.Path)
	}
	slices.Sort(routes)
	require.Equal(t, slices.Sorted(maps.Keys(doors())), routes, "a route without a line in doors")

	for _, caller := range []struct {
		name string
		from string
		as   []func(*http.Request)
		role access.Role
		said bool // who it is, by a token that is known
	}{
		{"a stranger", stranger, nil, access.Anyone, false},
		{"a stranger with a wrong token", stranger, []func(*http.Request){bearer("wrong")}, access.Anyone, false},
		{"a stranger with a forged hop", stranger, []func(*http.Request){header("X-Forwarded-For", "127.0.0.1")}, access.Anyone, false},
		{"a reader from outside", stranger, []func(*http.Request){bearer("r-token")}, access.Reader, true},
		{"a sender from outside", stranger, []func(*http.Request){bearer("s-token")}, access.Sender, true},
		{"an operator from outside", stranger, []func(*http.Request){bearer("o-token")}, access.Operator, true},
		{"a trusted peer", trusted, nil, access.Sender, false},
		{"a trusted peer with a wrong token", trusted, []func(*http.Request){bearer("wrong")}, access.Anyone, false},
		{"a trusted reader", trusted, []func(*http.Request){bearer("r-token")}, access.Reader, true},
		{"a trusted operator", trusted, []func(*http.Request){bearer("o-token")}, access.Operator, true},
	} {
		for route, need := range doors() {
			method, path, _ := strings.Cut(route, " ")
			got := w.ask(method, filledIn(path), caller.from, caller.as...).Code
			switch {
			case caller.role.Includes(need):
				require.NotContains(t, []int{401, 403}, got, "%s: %s", caller.name, route)
			case caller.said:
				require.Equal(t, http.StatusForbidden, got, "%s: %s", caller.name, route)
			default:
				require.Equal(t, http.StatusUnauthorized, got, "%s: %s", caller.name, route)
			}
		}
	}
}

// K28: whatever route there is and however it is asked, a stranger learns whether we live and nothing more.
func TestK28_strangerGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config, _ *server.Deps) { c.RateLimit = 0 })
	ways := map[string][]func(*http.Request){
		"without a token":   {},
		"with a wrong one":  {bearer("wrong")},
		"with an empty one": {bearer("")},
		"with a forged hop": {header("X-Forwarded-For", "10.1.2.3"), header("X-Real-IP", "127.0.0.1"), header("Forwarded", "for=10.1.2.3")},
		"as another host":   {header("X-Forwarded-Host", "localhost"), header("X-Original-URL", "/healthz"), header("X-Rewrite-URL", "/healthz")},
		"as another method": {header("X-HTTP-Method-Override", "GET")},
		"with a body":       {body("application/json", `{"ids":[1],"reason":"x"}`)},
	}
	paths := []string{"/nowhere", "/riverui/../ops/summary", "//ops/summary", "/ops/summary/", "/healthz/..", "/OPS/summary"}
	for route := range doors() {
		_, path, _ := strings.Cut(route, " ")
		paths = append(paths, filledIn(path))
	}
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
			for way, set := range ways {
				got := w.ask(method, path, stranger, set...)
				if path == "/healthz" && (method == http.MethodGet || method == http.MethodHead) {
					require.Equal(t, http.StatusOK, got.Code)
					continue
				}
				require.Contains(t, []int{401, 403, 404}, got.Code, "%s %s %s", method, path, way)
			}
		}
	}
	require.Empty(t, w.mailbox.texts)
}

// K28: no page of another site can use what a browser remembers of an operator, or that its network is trusted.
func TestK28_otherSitesMayNotWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for route := range doors() {
		method, path, _ := strings.Cut(route, " ")
		if method == http.MethodGet || method == http.MethodHead {
			continue
		}
		for _, sign := range []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site"), header("Origin", "https://evil.example")} {
			require.Equal(t, http.StatusForbidden, w.ask(method, filledIn(path), trusted, bearer("o-token"), sign).Code, route)
			require.Equal(t, http.StatusForbidden, w.ask(method, filledIn(path), trusted, sign).Code, route)
		}
	}
	require.Empty(t, w.mailbox.texts)
}

// K28: many callers with 11 MB each, without a length: refused, nothing written, and no memory kept.
func TestK28_memoryStaysFlat(t *testing.T) { //nolint:paralleltest // it looks at the whole process's memory
	w := newWorld(t)
	ts := httptest.NewServer(w.handler)
	defer ts.Close()
	before := heap()
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 4 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+"/cminmsgs/send", io.LimitReader(spaces{}, 11_000_000))
				if err != nil {
					return err
				}
				r.Header.Set("Content-Type", "text/xml")
				got, err := ts.Client().Do(r)
				if err != nil {
					return err
				}
				_ = got.Body.Close()
				if got.StatusCode != http.StatusRequestEntityTooLarge {
					return http.ErrNotSupported
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	const room = 8 << 20
	require.Less(t, heap(), before+room)
	require.Empty(t, w.mailbox.texts)
}

// spaces is an endless body.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
