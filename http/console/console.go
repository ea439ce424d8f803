// Package console is what people look at: one page that says how things are, with links on, and River UI behind the
// operator's door (contract §4). It needs no script and no file beside the binary.
package console

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"msgexchange/db/store"
	"msgexchange/http/health"
	"msgexchange/jobs/fault"
)

//go:embed page.html
var pageText string

// Console renders the page. Make it with New; safe for concurrent use.
type Console struct {
	page *template.Template
	deps Deps
}

// Deps is what the page shows.
type Deps struct {
	Service string // name of the service
	Version string
	Report  func() health.Report
	Summary func(ctx context.Context) (store.OpsSummary, error)
	Now     func() time.Time
}

// New reads the template.
func New(d Deps) (*Console, error) {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("console page: %w", err)
	}
	return &Console{page: page, deps: d}, nil
}

// summaryTimeout keeps the page quick while our database is slow or away.
const summaryTimeout = 2 * time.Second

type view struct {
	Service, Version string
	At               time.Time
	Report           health.Report
	Summary          *store.OpsSummary // nil when it could not be read
	Problem          string
}

// Page serves GET /. It is shown also while the database is away.
func (c *Console) Page(g *gin.Context) error {
	ctx, cancel := context.WithTimeout(g.Request.Context(), summaryTimeout)
	defer cancel()
	v := view{Service: c.deps.Service, Version: c.deps.Version, At: c.deps.Now(), Report: c.deps.Report()}
	if summary, err := c.deps.Summary(ctx); err != nil {
		v.Problem = string(fault.Of(err))
	} else {
		v.Summary = &summary
	}
	var b bytes.Buffer
	if err := c.page.Execute(&b, v); err != nil {
		return fmt.Errorf("console page: %w", err)
	}
	g.Data(http.StatusOK, "text/html; charset=utf-8", b.Bytes())
	return nil
}
