package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/http/compat"
	"msgexchange/http/health"
	"msgexchange/http/ops"
	"msgexchange/http/server"
)

// Addresses of callers: httptest's own is in no trusted range.
const (
	stranger = "203.0.113.9:40000"
	trusted  = "10.1.2.3:40000"
	proxy    = "192.0.2.7:40000"
)

// world is a server with every neighbour faked.
type world struct {
	t       *testing.T
	cfg     server.Config
	deps    server.Deps
	mailbox *fakeMailbox
	handler http.Handler
}

func newWorld(t *testing.T, change ...func(*server.Config, *server.Deps)) *world {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("r-token rita reader\ns-token sam sender\no-token olga operator\n"), 0o600))
	w := &world{t: t, cfg: server.Defaults(), mailbox: &fakeMailbox{}}
	w.cfg.TokensFile = tokens
	w.cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}
	log := slog.New(slog.DiscardHandler)
	w.deps = server.Deps{
		Log: log, Now: time.Now,
		Health: health.New(time.Now, health.Probe{Name: "postgres", Critical: true}),
		Sender: &compat.Sender{Now: time.Now, Mailbox: w.mailbox, Log: log},
		Syncer: pages{}, Flights: pages{}, Refdata: pages{}, Ops: pages{}, Console: pages{},
		Jobs:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "jobs") }),
		Metrics: prometheus.NewRegistry(),
	}
	for _, f := range change {
		f(&w.cfg, &w.deps)
	}
	s, err := server.New(w.cfg, w.deps)
	require.NoError(t, err)
	w.handler = s.Handler()
	return w
}

// ask sends one request; set changes it first.
func (w *world) ask(method, path, from string, set ...func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, http.NoBody)
	r.RemoteAddr = from
	for _, f := range set {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func bearer(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

func body(mediaType, text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", mediaType)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

// fakeMailbox gives ids from 123 on.
type fakeMailbox struct {
	texts []string
	err   error
}

func (m *fakeMailbox) Insert(_ context.Context, text string, _ time.Time) (int64, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.texts = append(m.texts, text)
	return 122 + int64(len(m.texts)), nil
}

// pages answers everything with ok, or fails in the ways a handler can.
type pages struct{ fail error }

func (p pages) answer(c *gin.Context) error {
	if p.fail != nil {
		return p.fail
	}
	c.Data(http.StatusOK, "application/json", []byte(`{}`))
	return nil
}

func (p pages) All(c *gin.Context) error            { return p.answer(c) }
func (p pages) Find(c *gin.Context) error           { return p.answer(c) }
func (p pages) One(c *gin.Context) error            { return p.answer(c) }
func (p pages) Summary(c *gin.Context) error        { return p.answer(c) }
func (p pages) Messages(c *gin.Context) error       { return p.answer(c) }
func (p pages) Message(c *gin.Context) error        { return p.answer(c) }
func (p pages) Events(c *gin.Context) error         { return p.answer(c) }
func (p pages) Audit(c *gin.Context) error          { return p.answer(c) }
func (p pages) Maintenance(c *gin.Context) error    { return p.answer(c) }
func (p pages) Consistency(c *gin.Context) error    { return p.answer(c) }
func (p pages) Page(c *gin.Context) error           { return p.answer(c) }
func (p pages) History(c *gin.Context) error        { return p.answer(c) }
func (p pages) Requests(c *gin.Context) error       { return p.answer(c) }
func (p pages) Sync(c *gin.Context) error           { return p.answer(c) }
func (p pages) Overview(c *gin.Context) error       { return p.answer(c) }
func (p pages) List(c *gin.Context) error           { return p.answer(c) }
func (p pages) Event(c *gin.Context) error          { return p.answer(c) }
func (p pages) Holes(c *gin.Context) error          { return p.answer(c) }
func (p pages) MessageChanges(c *gin.Context) error { return p.answer(c) }

// Orders are the real ones' paths, and answer like everything else.
func (p pages) Orders() map[string]func(*gin.Context) error {
	orders := (&ops.API{}).Orders()
	for path := range orders {
		orders[path] = p.answer
	}
	return orders
}

// panicking stands for a defect of ours.
type panicking struct{ pages }

func (panicking) Summary(*gin.Context) error { panic("a defect") }

// torn fails when part of its answer is out.
type torn struct{ pages }

func (torn) All(c *gin.Context) error {
	_, _ = c.Writer.WriteString(`{"is_success":true,"body":[`)
	c.Writer.Flush()
	return errors.New("the database went away")
}
