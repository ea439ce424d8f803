package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
)

// handle puts around a route what every route has: headers, who is calling, limits, errors, one line in the log.
func (s *Server) handle(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		start := s.deps.Now()
		caller := s.gate.Identify(c.Request)
		ctx, cancel := within(access.With(c.Request.Context(), caller), r)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		setHeaders(c.Writer.Header(), r)
		whole := c.Request.Body
		c.Request.Body = http.MaxBytesReader(c.Writer, whole, int64(s.cfg.MaxBody))

		err := s.run(c, r, caller)
		broken := err != nil && c.Writer.Written()
		if err != nil && !broken {
			s.refuse(c, r, problem.Of(err), whole)
		}
		s.log(c, r, caller, s.deps.Now().Sub(start), err)
		if broken {
			// Part of the answer is out: only a torn connection tells the caller that the rest is missing.
			panic(http.ErrAbortHandler)
		}
	}
}

// answerTimeout bounds what a route may take to find its answer: a database that hangs is one that is away, and the caller
// is told so.
const answerTimeout = 5 * time.Second

func within(ctx context.Context, r route) (context.Context, context.CancelFunc) {
	if r.long {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, answerTimeout)
}

// run admits the caller and does the work. A panic of a handler becomes its error, with the stack.
func (s *Server) run(c *gin.Context, r route, caller access.Caller) (err error) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic value, not a chain
			err = fault.New(fault.Infra, "handle request", "panic: %v\n%s", p, debug.Stack())
		} else if p != nil {
			panic(p)
		}
	}()
	if refused := s.admit(c.Request, r, caller); refused != nil {
		return refused
	}
	return r.do(c)
}

// admit asks, cheapest first: not too often, not from another site's page, allowed at all, not too large.
func (s *Server) admit(req *http.Request, r route, caller access.Caller) error {
	if r.need != access.Anyone && !s.limiter.Allow(caller.Key(), s.deps.Now()) {
		return problem.New(problem.RateLimited, "too many requests; slow down")
	}
	// Trusted peers need no token and browsers remember Basic, so another site's page must not be able to write (K28).
	if err := s.origin.Check(req); err != nil {
		return &problem.Error{Code: problem.Forbidden, Detail: "pages of other sites may not write here", Err: err}
	}
	if refused := caller.May(r.need); refused != nil {
		return refused
	}
	if strings.ContainsRune(req.URL.Path, 0) || !utf8.ValidString(req.URL.Path) { // PostgreSQL takes neither
		return problem.New(problem.BadRequest, "the path is no text")
	}
	if req.ContentLength > int64(s.cfg.MaxBody) {
		return &http.MaxBytesError{Limit: int64(s.cfg.MaxBody)}
	}
	return nil
}

// refuse answers in the route's form. After a body over the cap it first reads on for a while without keeping anything:
// most clients look for the answer only when they have sent all, and a connection closed before would hide it.
func (s *Server) refuse(c *gin.Context, r route, e *problem.Error, whole io.Reader) {
	switch e.Code {
	case problem.Unauthorized:
		c.Writer.Header().Add("WWW-Authenticate", `Bearer realm="msgexchange"`)
		c.Writer.Header().Add("WWW-Authenticate", `Basic realm="msgexchange", charset="UTF-8"`)
	case problem.TooLarge:
		_, _ = io.CopyN(io.Discard, whole, int64(s.cfg.MaxBody))
	default: // the form says it all
	}
	r.fail(c.Writer, e)
}

// Policies for pages: nothing is loaded from anywhere and nobody frames us; River UI brings its own scripts.
const (
	plainPolicy   = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	scriptsPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"
)

func setHeaders(h http.Header, r route) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	if r.scripts {
		h.Set("Content-Security-Policy", scriptsPolicy)
		return
	}
	h.Set("Content-Security-Policy", plainPolicy)
	h.Set("Cache-Control", "no-store")
}

// maxLoggedBytes bounds what a line of the log repeats of a query.
const maxLoggedBytes = 300

// asked are the parameters that a request gave, of those that the log shows.
func (r route) asked(req *http.Request) string {
	if len(r.logged) == 0 || req.URL.RawQuery == "" {
		return ""
	}
	given, shown := req.URL.Query(), url.Values{}
	for _, name := range r.logged {
		if v := given.Get(name); v != "" {
			shown.Set(name, v)
		}
	}
	s := shown.Encode()
	return s[:min(len(s), maxLoggedBytes)]
}

// log writes the request's one line: ERROR with the cause when the fault is ours, WARN when something we need was away.
func (s *Server) log(c *gin.Context, r route, caller access.Caller, took time.Duration, err error) {
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path), slog.Int("status", c.Writer.Status()),
		slog.Int("bytes", max(c.Writer.Size(), 0)), slog.Int64("took_ms", took.Milliseconds()), slog.Any("caller", caller),
	}
	if asked := r.asked(c.Request); asked != "" {
		attrs = append(attrs, slog.String("query", asked))
	}
	if r.quiet {
		level = slog.LevelDebug
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", fault.Text(err)))
		switch problem.Of(err).Code {
		case problem.Internal:
			level = slog.LevelError
		case problem.Unavailable, problem.MailboxUnavailable:
			level = slog.LevelWarn
		default: // the caller's own doing
		}
	}
	if c.Request.Context().Err() != nil { // the caller has gone; nobody must act
		level = min(level, slog.LevelInfo)
	}
	s.deps.Log.LogAttrs(context.WithoutCancel(c.Request.Context()), level, "http request", attrs...)
}
