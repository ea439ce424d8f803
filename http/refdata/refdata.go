// Package refdata shows the reference data: which lists there are and how old they are, and each list page by page (contract
// §4, §8.30). A page is of one version of its list: the ETag names it, and a cursor of an older one is refused.
package refdata

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/param"
	"msgexchange/http/problem"
)

// API serves /refdata. Safe for concurrent use.
type API struct {
	Pool  *pgxpool.Pool
	Store *store.Store
}

// Rows of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Overview serves GET /refdata.
func (a *API) Overview(c *gin.Context) error {
	sets, err := a.Store.ReferenceSets(c.Request.Context(), a.Pool)
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, struct {
		Items []store.ReferenceSet `json:"items"`
	}{sets})
}

// page is a part of one list.
type page struct {
	Items []store.ReferenceItem `json:"items"`
	Next  *string               `json:"next"` // nil on the last page
}

// List serves GET /refdata/{rtype}.
func (a *API) List(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	limit := q.Limit(defaultLimit, maxLimit)
	after, err := readCursor(q.Text("after"))
	if err != nil {
		return err
	}
	if err := q.Err(); err != nil {
		return err
	}
	ctx, rtype := c.Request.Context(), strings.ToUpper(c.Param("rtype"))
	var (
		set  store.ReferenceSet
		rows []store.ReferenceItem
	)
	err = db.InSnapshot(ctx, a.Pool, func(tx pgx.Tx) error {
		var ok bool
		if set, ok, err = a.Store.ReferenceSet(ctx, tx, rtype); err != nil {
			return err
		}
		switch {
		case !ok || set.BatchID == 0:
			return problem.New(problem.NotFound, "there is no such list")
		case after.batch != 0 && after.batch != set.BatchID:
			return problem.New(problem.Conflict, "the list has changed since the page before; begin again")
		case c.Request.Header.Get("If-None-Match") == etag(set):
			return nil
		}
		rows, err = a.Store.ReferencePage(ctx, tx, rtype, after.key, limit+1)
		return err
	})
	if err != nil {
		return err
	}
	c.Writer.Header().Set("ETag", etag(set))
	c.Writer.Header().Set("Cache-Control", "no-cache") // keep it, and ask whether it still holds
	if rows == nil {
		c.Writer.WriteHeader(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return nil
	}
	out := page{Items: rows}
	if len(rows) > limit {
		out.Items = rows[:limit]
		next := cursor{set.BatchID, rows[limit-1].Rkey}.String()
		out.Next = &next
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, out)
}

// etag names the version of a list.
func etag(s store.ReferenceSet) string {
	return `"` + s.Rtype + "-" + strconv.FormatInt(s.BatchID, 10) + `"`
}

// cursor is where a page begins: after a key, in one version of the list.
type cursor struct {
	batch int64
	key   string
}

// String is opaque to callers and safe in a URL.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%s", c.batch, c.key))
}

func readCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	version, key, found := strings.Cut(string(b), ".")
	if err == nil {
		c.batch, err = strconv.ParseInt(version, 10, 64)
	}
	if c.key = key; err != nil || !found || c.batch < 1 || c.String() != s || strings.ContainsRune(key, 0) || strings.ToValidUTF8(key, "") != key {
		return cursor{}, problem.New(problem.BadRequest, "after is no cursor of this service")
	}
	return c, nil
}
