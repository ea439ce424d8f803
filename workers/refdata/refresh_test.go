package refdata_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/adminapi"
	"msgexchange/jobs/fault"
	jobsrefdata "msgexchange/jobs/refdata"
	"msgexchange/workers/refdata"
)

func TestMain(m *testing.M) { os.Exit(dbtest.NoLeaks(dbtest.Run(m))) }

// rig is a refresher between a real HTTP server and a real PostgreSQL.
type rig struct {
	t      *testing.T
	pool   *pgxpool.Pool
	clock  time.Time
	work   *refdata.Refresher
	mu     sync.Mutex       // over the rest: a client may ask again beside a handler that has not returned
	answer http.HandlerFunc // of the neighbour
	asked  []*http.Request
}

func setup(t *testing.T, timeout time.Duration) *rig {
	t.Helper()
	r := &rig{t: t, pool: dbtest.New(t), clock: time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req)
		answer := r.answer
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(server.Close)
	client := adminapi.New(adminapi.Config{URL: server.URL + "/api/", Token: "s3cret", Timeout: timeout})
	t.Cleanup(client.Close)
	e, err := jobsrefdata.ParseEndpoint("AIRL", "/airlines code")
	require.NoError(t, err)
	r.work = &refdata.Refresher{
		Endpoints: map[string]jobsrefdata.Endpoint{"AIRL": e}, Neighbour: client, Pool: r.pool, Store: store.New(time.UTC),
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return r.clock },
	}
	return r
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func (r *rig) refresh(answer http.HandlerFunc) error {
	r.t.Helper()
	r.mu.Lock()
	r.answer = answer
	r.mu.Unlock()
	_, err := r.work.Refresh(r.t.Context(), "AIRL")
	return err
}

func (r *rig) one(query string) (out string) {
	r.t.Helper()
	require.NoError(r.t, r.pool.QueryRow(r.t.Context(), query).Scan(&out))
	return out
}

// keys are those of the list as readers see it.
func (r *rig) keys() string {
	r.t.Helper()
	return r.one("SELECT coalesce(string_agg(rkey || doc::text || source, ' ' ORDER BY rkey), '') FROM ref_master WHERE rtype = 'AIRL'")
}

// failure is what is noted beside the list; empty when its last refresh succeeded.
func (r *rig) failure() string {
	r.t.Helper()
	return r.one("SELECT coalesce(max(failure), '') FROM ref_set WHERE rtype = 'AIRL'")
}

// age is the gauge of the list's age; -1 when it is not shown.
func (r *rig) age() float64 {
	r.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(refdata.NewAge(r.pool, r.work.Store, func() time.Time { return r.clock }))
	families, err := reg.Gather()
	require.NoError(r.t, err)
	if len(families) == 0 {
		return -1
	}
	require.Equal(r.t, "msgx_refdata_age_seconds", families[0].GetName())
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// A list is what the neighbour says, whole; what it no longer has goes.
func TestRefresh(t *testing.T) {
	t.Parallel()
	r := setup(t, 10*time.Second)
	require.InDelta(t, -1, r.age(), 0, "a list that never came has no age")
	require.NoError(t, r.refresh(says(`[{"code":"CA"},{"code":"3U","n":1}]`)))
	require.Equal(t, `3U{"n": 1, "code": "3U"}ADMINAPI CA{"code": "CA"}ADMINAPI`, r.keys())
	require.Equal(t, "/api/airlines Bearer s3cret", r.asked[0].URL.Path+" "+r.asked[0].Header.Get("Authorization"))
	r.clock = r.clock.Add(time.Minute)
	require.InDelta(t, 60, r.age(), 0)
	require.NoError(t, r.refresh(says(`[{"code":"CA","n":2}]`)))
	require.Equal(t, `CA{"n": 2, "code": "CA"}ADMINAPI`, r.keys())
	require.InDelta(t, 0, r.age(), 0)
	require.Equal(t, "2", r.one("SELECT count(*)::text FROM ref_batch WHERE source = 'ADMINAPI' AND mode = 'COMPLETE'"))
	_, err := r.work.Refresh(t.Context(), "NONE")
	require.Error(t, err)
}

// Whatever the neighbour does wrong, the last good list stays, with its age, and the failure stands beside it.
func TestRefresh_misbehaving(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  fault.Class
		why    string
		hangs  bool
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, fault.Outage, "500", false},
		"429": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, fault.Outage, "429", false},
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, fault.Infra, "401", false},
		"404": {http.NotFound, fault.Infra, "404", false},
		"sends us away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://203.0.113.9/", http.StatusFound)
		}, fault.Infra, "302", false},
		"304, unasked":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, fault.Infra, "304", false},
		"nothing":          {says(""), fault.Protocol, "EOF", false},
		"half JSON":        {says(`[{"code":"CA"},{"code":`), fault.Protocol, "unexpected EOF", false},
		"an empty list":    {says(`[]`), fault.Protocol, "the list is empty", false},
		"duplicate keys":   {says(`[{"code":"CA"},{"code":"CA"}]`), fault.Protocol, "the same key", false},
		"a record keyless": {says(`[{"code":"CA"},{}]`), fault.Protocol, "there is no code", false},
		"no UTF-8":         {says("[{\"code\":\"C\xffA\"}]"), fault.Protocol, "no UTF-8", false},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `[{"code":"CA"}]`)
		}, fault.Protocol, "cut off", false},
		"an error page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><title>502</title></html>")
		}, fault.Protocol, "invalid character", false},
		"far too large": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(blanks{}, 65<<20)) }, fault.Protocol, "larger than", false},
		"far too large, unpacked": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			_, _ = io.Copy(packed, io.LimitReader(blanks{}, 65<<20))
			_ = packed.Close()
		}, fault.Protocol, "larger than", false},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Outage, "EOF", false},
		"resets the connection": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{")
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, fault.Outage, "reset", false},
		"speaks no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_ = c.Close()
		}, fault.Outage, "malformed", false},
		"a header that is none": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nETag: a\x00b\r\nContent-Length: 15\r\n\r\n"+`[{"code":"CA"}]`)
			_ = c.Close()
		}, fault.Outage, "malformed", false},
		"what PostgreSQL cannot hold": {says(`[{"code":"CA","n":1e999999}]`), fault.Infra, "numeric", false},
		"half a character":            {says(`[{"code":"CA","n":"\ud800"}]`), fault.Infra, "", false},
		"a key without an end":        {says(`[{"code":"` + noise() + `"}]`), fault.Infra, "", false},
		"slow to begin":               {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, fault.Outage, "", true},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `[{"code":"CA"}`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, fault.Outage, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := time.Minute
			if c.hangs {
				patience = 2 * time.Second
			}
			r := setup(t, patience)
			require.NoError(t, r.refresh(says(`[{"code":"3U"}]`)))
			before := r.keys()
			r.clock = r.clock.Add(time.Hour)
			err := r.refresh(c.answer)
			require.Equal(t, c.class, fault.Of(err), "%v", err)
			require.ErrorContains(t, err, c.why)
			require.Equal(t, before, r.keys())
			require.InDelta(t, 3600, r.age(), 0)
			require.Contains(t, r.failure(), c.why)
			require.NotContains(t, r.failure(), "s3cret")
			require.NoError(t, r.refresh(says(`[{"code":"CA"}]`)))
			require.Empty(t, r.failure())
		})
	}
}

// blanks never end.
type blanks struct{}

// Read is io.Reader's.
func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// noise is longer than any index can hold, and cannot be packed.
func noise() string {
	var b strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		fmt.Fprintf(&b, "%x", rnd.Uint64())
	}
	return b.String()
}

// A mark of an answer that could not be shown again, or not be kept, is none: the list comes whole the next time, and comes.
func TestRefresh_uselessValidators(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]string{
		"no text": "\xff", "endless": `"` + strings.Repeat("x", 5000) + `"`, "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, 10*time.Second)
			answer := func(body string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					c, _, _ := http.NewResponseController(w).Hijack()
					_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: %d\r\n\r\n%s", mark, len(body), body)
					_ = c.Close()
				}
			}
			require.NoError(t, r.refresh(answer(`[{"code":"3U"}]`)))
			require.NoError(t, r.refresh(answer(`[{"code":"CA"}]`)))
			require.Equal(t, `CA{"code": "CA"}ADMINAPI`, r.keys())
			require.Empty(t, r.asked[1].Header.Get("If-None-Match"))
		})
	}
}

// What has not changed is not sent again; that it still holds makes it fresh. A validator is for one question and for the
// answer that we still have.
func TestRefresh_conditional(t *testing.T) {
	t.Parallel()
	for header, condition := range map[string]string{"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			const version = `"v1"`
			r := setup(t, 10*time.Second)
			answer := func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get(condition) == version {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				w.Header().Set(header, version)
				_, _ = io.WriteString(w, `[{"code":"3U"}]`)
			}
			require.NoError(t, r.refresh(answer))
			r.clock = r.clock.Add(time.Hour)
			require.NoError(t, r.refresh(answer))
			require.InDelta(t, 0, r.age(), 0)
			require.Equal(t, "1", r.one("SELECT count(*)::text FROM ref_batch"), "nothing was written")
			require.Equal(t, version, r.asked[1].Header.Get(condition))

			r.clock = r.clock.Add(time.Hour)
			require.NoError(t, r.refresh(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = r.pool.Exec(t.Context(), "UPDATE ref_set SET source = 'AODB', validator = NULL") // a message comes in between
				w.WriteHeader(http.StatusNotModified)
			}))
			require.InDelta(t, 3600, r.age(), 0, "what a message has said is not confirmed by the neighbour")
			require.NoError(t, r.refresh(answer))
			r.asked = r.asked[:2]

			e, err := jobsrefdata.ParseEndpoint("AIRL", "/carriers code")
			require.NoError(t, err)
			r.work.Endpoints["AIRL"] = e
			require.NoError(t, r.refresh(answer))
			require.Empty(t, r.asked[2].Header.Get(condition), "it was of another question")
			_, err = r.pool.Exec(t.Context(), "UPDATE ref_set SET source = 'AODB'")
			require.NoError(t, err)
			require.NoError(t, r.refresh(answer))
			require.Empty(t, r.asked[3].Header.Get(condition), "we have another answer since")
		})
	}
}

// readers begin to look at the list and go on until seen is called, which gives all that any of them saw, each once.
func (r *rig) readers(n int) (seen func() []string) {
	r.t.Helper()
	var (
		g    errgroup.Group
		all  sync.Map
		over = make(chan struct{})
	)
	for range n {
		g.Go(func() error {
			for {
				var saw string
				err := r.pool.QueryRow(r.t.Context(), `SELECT concat_ws(' ', count(*), (SELECT row_count FROM ref_set), count(DISTINCT batch_id)) FROM ref_master`).Scan(&saw)
				if err != nil {
					return err
				}
				all.Store(saw, true)
				select {
				case <-over:
					return nil
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	return func() (saw []string) {
		close(over)
		require.NoError(r.t, g.Wait())
		all.Range(func(k, _ any) bool { saw = append(saw, k.(string)); return true })
		return saw
	}
}

// 100,000 records go in set by set, and readers see the old list until they are all there.
func TestRefresh_large(t *testing.T) {
	t.Parallel()
	r := setup(t, time.Minute)
	require.NoError(t, r.refresh(says(`[{"code":"OLD"}]`)))
	var body bytes.Buffer
	const records = 100_000
	body.WriteString("[")
	for i := range records {
		fmt.Fprintf(&body, `%s{"code":"K%06d","name":"%s"}`, strings.Repeat(",", min(i, 1)), i, strings.Repeat("x", 60))
	}
	body.WriteString("]")
	seen := r.readers(2)
	start := time.Now()
	require.NoError(t, r.refresh(says(body.String())))
	t.Logf("%d records took %s", records, time.Since(start).Round(time.Millisecond))
	require.Subset(t, []string{"1 1 1", "100000 100000 1"}, seen(), "count, count it says of itself, batches")
	require.Equal(t, "100000 1", r.one("SELECT concat_ws(' ', count(*), count(DISTINCT batch_id)) FROM ref_master"))
	require.Equal(t, "100000", r.one("SELECT row_count::text FROM ref_set"))
	require.Equal(t, "1", r.one("SELECT removed::text FROM ref_batch ORDER BY id DESC LIMIT 1"))

	require.Error(t, r.refresh(says(strings.Replace(body.String(), `"K099999"`, `"K000000"`, 1))), "one bad record among them")
	require.Equal(t, "100000", r.one("SELECT count(*)::text FROM ref_master"))
}
