package server

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"msgexchange/http/access"
	"msgexchange/http/problem"
)

// JobsPrefix is where River UI expects to live.
const JobsPrefix = "/riverui"

// route is one line of the contract's table: who may call it, and how it says that it failed.
type route struct {
	method string
	path   string
	need   access.Role
	fail   problem.Form
	do     func(c *gin.Context) error
	// quiet routes are called by machines every few seconds: their lines go to DEBUG.
	quiet bool
	// logged are the parameters that the access log shows: what was asked for, never what a caller may have put there by mistake.
	logged []string
	// long routes bound themselves, for what they read or write takes as long as the caller's line; the others have answerTimeout.
	long bool
	// scripts lets the page load its own scripts and styles.
	scripts bool
}

func (s *Server) routes() ([]route, error) {
	description, err := descriptionJSON()
	if err != nil {
		return nil, err
	}
	d := s.deps
	metrics := promhttp.HandlerFor(d.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	routes := []route{
		{method: http.MethodGet, path: "/healthz", need: access.Anyone, fail: problem.Write, do: d.Health.Live, quiet: true},
		{method: http.MethodGet, path: "/readyz", need: access.Reader, fail: problem.Write, do: d.Health.Ready, quiet: true},
		// Some balancers probe with HEAD: the server leaves out the body that GET has.
		{method: http.MethodHead, path: "/healthz", need: access.Anyone, fail: problem.Write, do: d.Health.Live, quiet: true},
		{method: http.MethodHead, path: "/readyz", need: access.Reader, fail: problem.Write, do: d.Health.Ready, quiet: true},
		{method: http.MethodGet, path: "/metrics", need: access.Reader, fail: problem.Write, do: wrap(metrics), quiet: true},
		{method: http.MethodGet, path: "/openapi.json", need: access.Reader, fail: problem.Write, do: blob("application/json", description)},
		{method: http.MethodGet, path: "/", need: access.Reader, fail: problem.Write, do: d.Console.Page},

		{method: http.MethodPost, path: "/cminmsgs/send", need: access.Sender, fail: problem.WriteDto, do: d.Sender.Send, long: true},
		{method: http.MethodPost, path: "/schd/sync", need: access.Sender, fail: problem.WriteDto, do: d.Syncer.Sync, long: true},

		{method: http.MethodGet, path: "/all/flights", need: access.Reader, fail: problem.WriteDto, do: d.Flights.All, long: true, logged: flightParameters()},
		{method: http.MethodGet, path: "/flights", need: access.Reader, fail: problem.Write, do: d.Flights.Find, long: true, logged: flightParameters()},
		{method: http.MethodGet, path: "/flights/:flid", need: access.Reader, fail: problem.Write, do: d.Flights.One},
		{method: http.MethodGet, path: "/flights/:flid/history", need: access.Reader, fail: problem.Write, do: d.Flights.History, logged: flightParameters()},

		{method: http.MethodGet, path: "/refdata", need: access.Reader, fail: problem.Write, do: d.Refdata.Overview},
		{method: http.MethodGet, path: "/refdata/:rtype", need: access.Reader, fail: problem.Write, do: d.Refdata.List},

		{method: http.MethodGet, path: "/ops/summary", need: access.Reader, fail: problem.Write, do: d.Ops.Summary},
		{method: http.MethodGet, path: "/ops/messages", need: access.Reader, fail: problem.Write, do: d.Ops.Messages},
		{method: http.MethodGet, path: "/ops/messages/:id", need: access.Reader, fail: problem.Write, do: d.Ops.Message},
		{method: http.MethodGet, path: "/ops/messages/:id/changes", need: access.Reader, fail: problem.Write, do: d.Ops.MessageChanges},
		{method: http.MethodGet, path: "/ops/events", need: access.Reader, fail: problem.Write, do: d.Ops.Events},
		{method: http.MethodGet, path: "/ops/events/:id", need: access.Reader, fail: problem.Write, do: d.Ops.Event},
		{method: http.MethodGet, path: "/ops/holes", need: access.Reader, fail: problem.Write, do: d.Ops.Holes},
		{method: http.MethodGet, path: "/ops/maintenance", need: access.Reader, fail: problem.Write, do: d.Ops.Maintenance},
		{method: http.MethodGet, path: "/ops/consistency", need: access.Reader, fail: problem.Write, do: d.Ops.Consistency},
		{method: http.MethodGet, path: "/ops/requests", need: access.Reader, fail: problem.Write, do: d.Ops.Requests},
		{method: http.MethodGet, path: "/ops/audit", need: access.Operator, fail: problem.Write, do: d.Ops.Audit},
	}
	for path, do := range d.Ops.Orders() {
		routes = append(routes, route{method: http.MethodPost, path: path, need: access.Operator, fail: problem.Write, do: do, long: true})
	}
	if d.Jobs != nil {
		routes = append(routes, jobRoutes(d.Jobs)...)
	}
	return routes, nil
}

// flightParameters are those of queries about flights.
func flightParameters() []string {
	return []string{"operationDay", "flno", "mvin", "stand", "gate", "limit", "after"}
}

// jobRoutes are River UI's: it cancels, deletes and retries jobs, so all of it is the operator's.
func jobRoutes(ui http.Handler) []route {
	var routes []route
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		for _, path := range []string{JobsPrefix, JobsPrefix + "/*path"} {
			routes = append(routes, route{
				method: method, path: path, need: access.Operator, fail: problem.Write, do: wrap(ui), scripts: true,
			})
		}
	}
	return routes
}

// Paths and methods nobody knows are a reader's too: a stranger learns nothing about what there is.
func unknownPath() route {
	return route{need: access.Reader, fail: problem.Write, do: func(*gin.Context) error {
		return problem.New(problem.NotFound, "there is nothing at this path")
	}}
}

func unknownMethod() route {
	return route{need: access.Reader, fail: problem.Write, do: func(*gin.Context) error {
		return problem.New(problem.MethodNotAllowed, "this path does not know the method")
	}}
}

func wrap(h http.Handler) func(*gin.Context) error {
	return func(c *gin.Context) error {
		h.ServeHTTP(c.Writer, c.Request)
		return nil
	}
}

func blob(mediaType string, b []byte) func(*gin.Context) error {
	return func(c *gin.Context) error {
		c.Data(http.StatusOK, mediaType, b)
		return nil
	}
}
