package openapi_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/http/server"
)

// odd are values that somebody, or somebody's program, will send one day.
func odd() []string {
	return []string{
		"", "0", "-1", "1", "9223372036854775807", "9223372036854775808", "x", "'", `"`, "%", "_", `\`, "../..", "\x00", "\xff", "\n", "😀", "é", "0:1", "2147483648:1",
		"2026-11-30", "2026-11-30T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "99999-01-01", "true", "DEAD", "KAFKA:msg", "FLOP", "RQRD-SLST",
		"MS4yLjM", "LTEuLTEuLTE", "OTIyMzM3MjAzNjg1NDc3NTgwNy4yMTQ3NDgzNjQ3LjkyMjMzNzIwMzY4NTQ3NzU4MDc", strings.Repeat("a", 199), strings.Repeat("a", 201),
	}
}

// oddBodies are orders that nobody means.
func oddBodies() []string {
	return []string{
		"", "{", "[]", "null", "{}", "<MSG/>", `{"reason":"x"}`, `{"reason":" "}`, `{"reason":"x"}{}`, `{"reason":"x","ids":[]}`, `{"reason":"x","ids":[-1,0,9223372036854775807]}`,
		`{"reason":"x","ids":[1e3]}`, `{"reason":"x","ids":["1"]}`, `{"reason":"x","eventIds":[0,-5]}`, `{"reason":"x","fromEventId":-5,"toEventId":9223372036854775807}`,
		`{"reason":"x","fromEventId":5,"toEventId":1}`, `{"reason":"x","from":"0001-01-01T00:00:01Z"}`, `{"reason":"x","from":"9999-12-31T23:59:59Z"}`, `{"reason":"\u0000","ids":[1]}`,
		`{"reason":"\ud800","ids":[1]}`, `{"reason":"x","watermark":"-1"}`, `{"reason":"x","watermark":"9223372036854775807"}`, `{"reason":"x","kind":""}`,
		`{"reason":"x","kind":"RQFD-NONE","startTime":"0000-00-00 00:00","endTime":"9999-99-99 99:99"}`, `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 00:00"}`,
		`{"reason":"x","dryRun":"yes"}`, `{"reason":"` + strings.Repeat("x", 501) + `"}`,
	}
}

// Whatever is asked, in a parameter, a path or a body, is never answered with a fault of ours.
func TestOddRequestsAreNotOurFault(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	fill(t, pool)
	h := serve(t, pool, func(c *server.Config) { c.RateLimit = 0 })
	doc, _ := described(t, h)
	asked := 0
	try := func(method, target, body string) {
		t.Helper()
		asked++
		rec := ask(t, h, method, target, "10.0.0.1:1", body, "Authorization", "Bearer acts", "Content-Type", "application/json")
		require.Less(t, rec.Code, http.StatusInternalServerError, "%s %q %s: %s", method, target, body, rec.Body)
	}
	for template, item := range doc.Paths.Map() {
		if template == "/readyz" { // 503 on purpose
			continue
		}
		paths := []string{template}
		if strings.Contains(template, "{") {
			paths = nil
			for _, v := range odd() {
				paths = append(paths, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllLiteralString(template, url.PathEscape(v)))
			}
		}
		for method, operation := range item.Operations() {
			for _, path := range paths {
				if method != http.MethodGet {
					for _, body := range oddBodies() {
						try(method, path, body)
					}
					continue
				}
				try(method, path, "")
				for _, p := range operation.Parameters {
					for _, v := range odd() {
						try(method, path+"?"+url.Values{p.Value.Name: {v}}.Encode(), "")
					}
				}
			}
		}
	}
	require.Greater(t, asked, 2000)
}
