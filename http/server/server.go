// Package server is the HTTP surface as a whole: which routes there are and who may use them, limits, headers, errors, the
// access log, and the server's life (contract §4, §8.8; K28). What a route does is in the packages beside it.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"msgexchange/http/access"
	"msgexchange/jobs/fault"
)

// Deps is what the routes are made of. Everything is needed unless said.
type Deps struct {
	Log     *slog.Logger
	Now     func() time.Time
	Health  Health
	Sender  Sender
	Syncer  Syncer
	Flights Flights
	Refdata Refdata
	Ops     Ops
	Console Console
	// Jobs is River UI under JobsPrefix; nil leaves the prefix unknown.
	Jobs http.Handler
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
}

// Health answers about the process and what it depends on.
type Health interface {
	Live(c *gin.Context) error
	Ready(c *gin.Context) error
}

// Sender takes messages in the way of the system being replaced.
type Sender interface {
	Send(c *gin.Context) error
}

// Syncer asks for schedules in the way of the system being replaced.
type Syncer interface {
	Sync(c *gin.Context) error
}

// Flights answers about flight state.
type Flights interface {
	All(c *gin.Context) error
	Find(c *gin.Context) error
	One(c *gin.Context) error
	History(c *gin.Context) error
}

// Refdata answers about reference data.
type Refdata interface {
	Overview(c *gin.Context) error
	List(c *gin.Context) error
}

// Ops answers about messages and events, and does what operators order.
type Ops interface {
	Summary(c *gin.Context) error
	Messages(c *gin.Context) error
	Message(c *gin.Context) error
	MessageChanges(c *gin.Context) error
	Events(c *gin.Context) error
	Event(c *gin.Context) error
	Holes(c *gin.Context) error
	Requests(c *gin.Context) error
	Audit(c *gin.Context) error
	Maintenance(c *gin.Context) error
	Consistency(c *gin.Context) error
	// Orders are the actions by path, each a POST.
	Orders() map[string]func(*gin.Context) error
}

// Console is the one page for people.
type Console interface {
	Page(c *gin.Context) error
}

// Server is the HTTP surface. Safe for concurrent use.
type Server struct {
	cfg     Config
	deps    Deps
	gate    *access.Gate
	limiter *access.Limiter
	origin  *http.CrossOriginProtection
	engine  *gin.Engine
}

// New checks cfg, reads the tokens file and lays out the routes. It switches gin to release mode for the whole process.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	tokens, err := access.OpenTokens(cfg.TokensFile, deps.Now, deps.Log)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, deps: deps,
		gate:    &access.Gate{Trusted: cfg.TrustedCIDRs, Proxies: cfg.TrustedProxies, Tokens: tokens},
		limiter: access.NewLimiter(cfg.RateLimit, cfg.RateBurst),
		origin:  http.NewCrossOriginProtection(),
	}
	s.engine, err = s.newEngine()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newEngine uses gin for routing alone. Its own idea of the caller's address is switched off: it reads only the first line
// of X-Forwarded-For, which the caller writes (gin#2473); access.Peer reads them all.
func (s *Server) newEngine() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if err := engine.SetTrustedProxies(nil); err != nil {
		return nil, fmt.Errorf("trust no proxy: %w", err)
	}
	engine.RedirectTrailingSlash = false // a redirect would answer before anybody asked who is calling
	engine.HandleMethodNotAllowed = true
	routes, err := s.routes()
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		engine.Handle(r.method, r.path, s.handle(r))
	}
	engine.NoRoute(s.handle(unknownPath()))
	engine.NoMethod(s.handle(unknownMethod()))
	return engine, nil
}

// Handler is the whole surface, for tests and for other servers.
func (s *Server) Handler() http.Handler { return s.engine }

// maxHeaderBytes bounds what a request may say before its body.
const maxHeaderBytes = 64 << 10

// Run serves on ln until ctx ends, then lets requests in flight finish within the shutdown time-out. It closes ln.
// A shutdown in time is no error.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.engine,
		ReadHeaderTimeout: s.cfg.ReadHeaderTimeout,
		ReadTimeout:       s.cfg.ReadTimeout,
		WriteTimeout:      s.cfg.WriteTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelWarn),
		// Requests in flight outlive ctx: they end by themselves or with their connection.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		s.deps.Log.Info("http listening", "addr", ln.Addr().String())
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve http: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
		defer cancel()
		if err := srv.Shutdown(grace); err != nil { // an end in time matters more than a request that hangs
			s.deps.Log.Warn("http requests cut off", "grace", s.cfg.ShutdownTimeout.String(), "error", fault.Text(err))
			return srv.Close()
		}
		return nil
	})
	return g.Wait()
}
