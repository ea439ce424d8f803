package refdata_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/problem"
	"msgexchange/http/refdata"
	jobsrefdata "msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// put makes the stands the whole list.
func put(t *testing.T, pool *pgxpool.Pool, stands ...string) {
	t.Helper()
	b := jobsrefdata.Batch{RType: "SLST", Mode: sis.Complete, Source: jobsrefdata.AODB}
	for _, s := range stands {
		b.Records = append(b.Records, jobsrefdata.Record{Key: s, Doc: json.RawMessage(`{"scod":"` + s + `"}`)})
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := store.New(time.UTC).ApplyReference(t.Context(), tx, b, "", time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
		return err
	}))
}

type page struct {
	Items []struct{ Rkey string }
	Next  *string
}

func get(t *testing.T, api *refdata.API, query, etag string) (page, *httptest.ResponseRecorder, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/refdata/slst"+query, http.NoBody)
	c.Request.Header.Set("If-None-Match", etag)
	c.Params = gin.Params{{Key: "rtype", Value: "slst"}}
	err := api.List(c)
	var p page
	if rec.Body.Len() > 0 {
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &p))
	}
	return p, rec, err
}

// A list is read page by page, in one version; who goes on after it has changed is told to begin again.
func TestList(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	api := &refdata.API{Pool: pool, Store: store.New(time.UTC)}
	_, _, err := get(t, api, "", "")
	require.Equal(t, problem.NotFound, problem.Of(err).Code)

	put(t, pool, "1", "2", "3", "4", "5")
	var keys []string
	query, tag := "?limit=2", ""
	for {
		p, rec, err := get(t, api, query, "")
		require.NoError(t, err)
		tag = rec.Header().Get("ETag")
		for _, i := range p.Items {
			keys = append(keys, i.Rkey)
		}
		if p.Next == nil {
			break
		}
		query = "?limit=2&after=" + *p.Next
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, keys)
	_, rec, err := get(t, api, "", tag)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotModified, rec.Code)
	require.Empty(t, rec.Body.String())

	put(t, pool)
	_, _, err = get(t, api, query, "")
	require.Equal(t, problem.Conflict, problem.Of(err).Code)
	p, rec, err := get(t, api, "", tag)
	require.NoError(t, err)
	require.NotEqual(t, tag, rec.Header().Get("ETag"))
	require.Equal(t, `{"items":[],"next":null}`, rec.Body.String())
	require.Empty(t, p.Items)
	for _, bad := range []string{"x", "LTEuMQ", "MS4"} {
		_, _, err = get(t, api, fmt.Sprint("?after=", bad), "")
		require.Error(t, err, bad)
	}
}
