package refdata_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/http/refdata"
	jobsrefdata "msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// put makes the stands the whole list.
func put(t *testing.T, pool *pgxpool.Pool, stands ...string) {
	t.Helper()
	putInto(t, pool, "SLST", stands...)
}

func putInto(t *testing.T, pool *pgxpool.Pool, rtype string, stands ...string) {
	t.Helper()
	b := jobsrefdata.Batch{RType: rtype, Mode: sis.Complete, Source: jobsrefdata.AODB}
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

	long := strings.Repeat("9", 400) // longer than any text a caller may choose
	put(t, pool, "1", "2", "3", long, long+"1")
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
	require.Equal(t, []string{"1", "2", "3", long, long + "1"}, keys)
	for _, same := range []string{tag, "W/" + tag, `"x", ` + tag, `"x",W/` + tag, "*"} {
		_, rec, err := get(t, api, "", same)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, rec.Code, same)
		require.Empty(t, rec.Body.String())
		require.Equal(t, tag, rec.Header().Get("ETag"))
	}
	for _, other := range []string{"", `"x"`, strings.Trim(tag, `"`), `"x` + tag[1:]} {
		_, rec, err := get(t, api, "", other)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, rec.Code, other)
	}

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

// A list about persons is an operator's, and no cache keeps it.
func TestList_persons(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	api := &refdata.API{Pool: pool, Store: store.New(time.UTC)}
	putInto(t, pool, "VIPL", "V1")
	for caller, want := range map[access.Caller]problem.Code{
		{}: problem.Unauthorized, {Role: access.Sender, Trusted: true}: problem.Unauthorized,
		{Name: "rita", Role: access.Reader}: problem.Forbidden, {Name: "olga", Role: access.Operator}: "",
	} {
		rec := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(rec)
		c.Request = httptest.NewRequestWithContext(access.With(t.Context(), caller), http.MethodGet, "/refdata/vipl", http.NoBody)
		c.Params = gin.Params{{Key: "rtype", Value: "vipl"}}
		err := api.List(c)
		if want != "" {
			require.Equal(t, want, problem.Of(err).Code, "%+v", caller)
			require.Empty(t, rec.Body.String())
			continue
		}
		require.NoError(t, err)
		require.Contains(t, rec.Body.String(), "V1")
		require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	}
}

// The overview says of each list how many, from where and how old; one that never came has no age.
func TestOverview(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	put(t, pool, "1", "2")
	_, err := pool.Exec(t.Context(), "INSERT INTO ref_set (rtype, failed_at, failure) VALUES ('AIRL', '2026-11-30 00:00Z', 'it is away')")
	require.NoError(t, err)
	api := &refdata.API{Pool: pool, Store: store.New(time.UTC), Now: func() time.Time { return time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC) }}
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/refdata", http.NoBody)
	require.NoError(t, api.Overview(c))
	require.JSONEq(t, `{"items":[
		{"rtype":"AIRL","count":0,"source":null,"batchId":0,"refreshedAt":null,"failedAt":"2026-11-30T00:00:00Z","failure":"it is away","ageSeconds":null},
		{"rtype":"SLST","count":2,"source":"AODB","batchId":1,"refreshedAt":"2026-11-30T00:00:00Z","failedAt":null,"failure":null,"ageSeconds":3600}
	]}`, rec.Body.String())
}
