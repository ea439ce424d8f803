// Package refdata shows the reference data: which lists there are and how old they are, and each list page by page (contract
// §4, §8.30). A page is of one version of its list: the ETag names it, and a cursor of an older one is refused.
package refdata

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/sis"
)

// API serves /refdata. Safe for concurrent use.
type API struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Now   func() time.Time
}

// Rows of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// summary is one list as a whole, and how many seconds ago it was last known to be whole; nil when it never was.
type summary struct {
	store.ReferenceSet
	AgeSeconds *int64 `json:"ageSeconds"`
}

// Overview serves GET /refdata.
func (a *API) Overview(c *gin.Context) error {
	sets, err := a.Store.ReferenceSets(c.Request.Context(), a.Pool)
	if err != nil {
		return err
	}
	now, items := a.Now(), make([]summary, len(sets))
	for i, s := range sets {
		items[i].ReferenceSet = s
		if s.RefreshedAt != nil {
			age := int64(max(now.Sub(*s.RefreshedAt), 0) / time.Second)
			items[i].AgeSeconds = &age
		}
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, struct {
		Items []summary `json:"items"`
	}{items})
}

// page is a part of one list.
type page struct {
	Items []store.ReferenceItem `json:"items"`
	Next  *string               `json:"next"` // nil on the last page
}

// List serves GET /refdata/{rtype}. A list about persons is an operator's.
func (a *API) List(c *gin.Context) error {
	ctx, rtype := c.Request.Context(), strings.ToUpper(c.Param("rtype"))
	personal := sis.Personal(rtype)
	if personal {
		if refused := access.From(ctx).May(access.Operator); refused != nil {
			return refused
		}
	}
	q := param.Of(c.Request.URL.Query())
	limit := q.Limit(defaultLimit, maxLimit)
	after, err := readCursor(c.Query("after")) // as long as the longest key makes it
	if err != nil {
		return err
	}
	if err := q.Err(); err != nil {
		return err
	}
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
		case holds(c.Request.Header.Values("If-None-Match"), etag(set)):
			return nil
		}
		rows, err = a.Store.ReferencePage(ctx, tx, rtype, after.key, limit+1)
		return err
	})
	if err != nil {
		return err
	}
	c.Writer.Header().Set("ETag", etag(set))
	c.Writer.Header().Set("Cache-Control", caching(personal))
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

// holds says that one of the tags of If-None-Match is that of the list as it is (RFC 9110 §13.1.2): weak or not, for a proxy
// that packs our answer makes its tag weak.
func holds(header []string, tag string) bool {
	for _, line := range header {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// caching lets callers keep a list and ask whether it still holds; one about persons is kept by nobody.
func caching(personal bool) string {
	if personal {
		return "no-store"
	}
	return "no-cache"
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
