// Package openapi_test holds the description in http/server/openapi.yaml against the server: every route is described,
// and what it answers is what is described.
package openapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/compat"
	"msgexchange/http/console"
	"msgexchange/http/flights"
	"msgexchange/http/health"
	"msgexchange/http/ops"
	"msgexchange/http/refdata"
	"msgexchange/http/server"
	"msgexchange/jobs"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	asking "msgexchange/jobs/request"
	"msgexchange/jobs/sis"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// mailbox stores nothing; it is away when told so by the text.
type mailbox struct{}

func (mailbox) Insert(_ context.Context, text string, _ time.Time) (int64, error) {
	if strings.Contains(text, "away") {
		return 0, errors.New("refused")
	}
	return 7, nil
}

// lane is busy when told so by the watermark.
type lane struct{}

func (lane) Look(_ context.Context, from inbox.Cutover) (inbox.Start, error) {
	return inbox.Start{From: from}, nil
}

func (lane) Reseed(_ context.Context, _ pgx.Tx, start inbox.Start) (store.Closed, error) {
	if start.From == "7" {
		return store.Closed{}, store.ErrUnfinished
	}
	return store.Closed{Generation: 1, Archived: 3}, nil
}

// jsonOf adds the media type to headers.
func jsonOf(headers []string) []string {
	return append([]string{"Content-Type", "application/json"}, headers...)
}

// requests registers nothing but schedules; those of 2099 do not get into the mailbox.
type requests struct{}

func (requests) Register(_ context.Context, _ pgx.Tx, kind message.Kind, w asking.Window, _ string) (asking.Request, error) {
	if kind != asking.Schedule {
		return asking.Request{}, asking.KindError{Kind: kind}
	}
	return asking.Request{ID: int64(w.From.Year()), Kind: kind, State: asking.Registered, SEQN: 217}, nil
}

func (r requests) Ask(ctx context.Context, kind message.Kind, w asking.Window, actor string) (asking.Request, error) {
	return r.Register(ctx, nil, kind, w, actor)
}

func (requests) Sent(_ context.Context, id int64, _ time.Duration) (int64, bool, error) {
	return 9, id != 2099, nil
}

func (requests) Kinds() []message.Kind { return []message.Kind{asking.Schedule} }

// asleep wakes nobody, and has the task archive; refdata has no neighbour.
type asleep struct{}

func (asleep) Wake(context.Context, pgx.Tx, ...jobs.Role) error { return nil }
func (asleep) Ring(...jobs.Role)                                {}
func (asleep) Names() []string                                  { return []string{"archive", "refdata"} }

func (asleep) Unable(task string) string {
	if task == "refdata" {
		return "there is no neighbour to ask"
	}
	return ""
}
func (asleep) Order(context.Context, pgx.Tx, string) (int64, error) { return 7, nil }

func now() time.Time { return time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC) }

// serve is the whole surface over a real database with a little of everything.
func serve(t *testing.T, pool *pgxpool.Pool, change func(*server.Config)) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st := store.New(time.FixedZone("CST", 8*60*60))
	api := &ops.API{Pool: pool, Store: st, Now: now, Waker: asleep{}, Keeper: asleep{}, Lane: lane{}, Asking: ops.Asking{Requests: requests{}, Zone: time.UTC}}
	ready := health.New(now, health.Probe{Name: "postgres", Critical: true})
	page, err := console.New(console.Deps{Service: "msgexchangeapi", Version: "test", Report: ready.Report, Summary: api.Read, Now: now})
	require.NoError(t, err)
	cfg := server.Defaults()
	cfg.TokensFile = filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(cfg.TokensFile, []byte("reads rita reader\nacts olga operator\n"), 0o600))
	if change != nil {
		change(&cfg)
	}
	s, err := server.New(cfg, server.Deps{
		Log: log, Now: now, Health: ready, Sender: &compat.Sender{Mailbox: mailbox{}, Now: now, Log: log},
		Syncer:  &compat.Syncer{Requests: requests{}, Zone: time.UTC},
		Flights: flights.New(pool, st, time.UTC), Refdata: &refdata.API{Pool: pool, Store: st, Now: time.Now}, Ops: api, Console: page, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	return s.Handler()
}

// fill puts in one flight that lives, one that does not, a message and two events.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	lives := &flight.Flight{
		FLID: 15, OperationDay: "2026-11-30", Version: 1, UpdatedAt: now(), LastMessage: message.Position{ID: 1}, CreatedBy: message.Position{ID: 1},
		Provenance: map[string]message.Position{"flno": {ID: 1}}, Lists: map[string][]sis.Entry{},
		Scalars: sis.Fields{"flno": sis.TextValue("CZ1"), "mvin": sis.TextValue("A"), "sodt": sis.MomentValue(now())},
	}
	gone := *lives
	gone.FLID, gone.DeletedAt, gone.DeletedBy = 16, now(), message.Position{Generation: 1, ID: 2}
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := store.WriteAll(t.Context(), tx, store.New(time.UTC).SaveFlights([]store.Save{{After: lives}, {After: &gone}})); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `
			INSERT INTO periodic_run (name, due_up_to, report) VALUES ('archive', now(), '{"counts":{"messages":1}}');
			INSERT INTO consistency_difference (flid, about, detail, first_seen_at, last_seen_at) VALUES (15, 'event', 'x', now(), now()), (16, 'mark', 'x', now(), now());
			INSERT INTO flight_history (flid, operation_day, state_version, rule, doc, provenance, swept_at, changes) VALUES (18, '2026-11-30', 2, 'departed', '{"flid":18}', '{"flno":4711}', now(),
				'[{"change_id":1,"msg_id":1,"generation":0,"kind":"SCHD-DNLD","change":"CREATE","state_version":1,"dttm":"2026-11-30T00:00:00Z","before":{},"fields":{},"changed_at":"2026-11-30T00:00:00Z"}]');
			INSERT INTO inbox_cursor (lane, updated_at) VALUES ('default', now());
			INSERT INTO inbox_hole (lane, first_id, last_id, first_seen_at) VALUES ('default', 5, 6, now()), ('default', 3, 3, now());
			INSERT INTO pipeline_lease (lane, role, heartbeat_at) VALUES ('default', 'head', now());
			INSERT INTO ref_set (rtype, batch_id, source, row_count, refreshed_at) VALUES ('SLST', 3, 'AODB', 2, now()), ('AIRL', 0, NULL, 0, NULL);
			INSERT INTO ref_master (rtype, rkey, doc, source, batch_id, refreshed_at) VALUES ('SLST', '208', '{"scod":"208"}', 'AODB', 3, now()), ('SLST', '209', '{}', 'AODB', 3, now());
			INSERT INTO req_track (kind, registered_at) VALUES ('RQFD-NONE', now());
			INSERT INTO proc_state (msg_id, state, identity_reuse, created_at, updated_at, finished_at) VALUES (1, 'SUCCEEDED', 'wrapped', now(), now(), now());
			INSERT INTO flight_change (flid, msg_id, generation, kind, change, state_version, dttm, before, fields, changed_at) VALUES
				(15, 1, 0, 'SCHD-DNLD', 'CREATE', 1, now(), '{}', '{"flno":"CZ1"}', now()),
				(15, 2, 1, 'FLOP-STND', NULL, 1, now(), '{}', '{}', now());
			INSERT INTO msg_event (target, msg_id, flid, partition_key, event_type, state_version, kind, payload, created_at) VALUES
				('KAFKA:msg', 1, 15, '15', 'UPSERT', 1, 'FLOP-PSDT', '{}', now()), ('KAFKA:schd', 1, 15, '15', 'TOMBSTONE', 1, 'FLOP-FDEL', NULL, now())`)
		return err
	}))
}

// described loads the description as the server serves it.
func described(t *testing.T, h http.Handler) (*openapi3.T, routers.Router) {
	t.Helper()
	rec := ask(t, h, http.MethodGet, "/openapi.json", "10.0.0.1:1", "")
	doc, err := openapi3.NewLoader().LoadFromData(rec.Body.Bytes())
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	router, err := legacy.NewRouter(doc)
	require.NoError(t, err)
	return doc, router
}

func ask(t *testing.T, h http.Handler, method, target, from, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := request(t, method, target, from, body, headers...)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func request(t *testing.T, method, target, from, body string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = from
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	h := serve(t, nil, nil)
	doc, _ := described(t, h)
	var routes, paths []string
	for _, r := range h.(*gin.Engine).Routes() {
		routes = append(routes, r.Method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.Path, "{$1}"))
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			paths = append(paths, method+" "+path)
		}
	}
	slices.Sort(routes)
	slices.Sort(paths)
	require.Equal(t, routes, paths)
}

func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	fill(t, pool)
	h := serve(t, pool, nil)
	_, router := described(t, h)
	const inside, outside, xml = "10.0.0.1:1", "203.0.113.9:1", "text/xml"
	const window = `{"startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59"}`
	operator, asJSON := []string{"Authorization", "Bearer acts", "Content-Type", "application/json"}, []string{"Content-Type", "application/json"}
	cases := []struct {
		method, target, from, body string
		headers                    []string
		status                     int
	}{
		{"POST", "/cminmsgs/send", inside, "<MSG/>", []string{"Content-Type", xml}, 200},
		{"POST", "/cminmsgs/send", inside, "<MSG/>", []string{"Content-Type", xml, "Accept", "text/plain"}, 200},
		{"POST", "/cminmsgs/send", inside, "", []string{"Content-Type", xml}, 400},
		{"POST", "/cminmsgs/send", inside, "<MSG>", []string{"Content-Type", xml}, 400},
		{"POST", "/cminmsgs/send", outside, "<MSG/>", []string{"Content-Type", xml}, 401},
		{"POST", "/cminmsgs/send", inside, "<MSG/>", []string{"Content-Type", xml, "Authorization", "Bearer reads"}, 403},
		{"POST", "/cminmsgs/send", inside, strings.Repeat(" ", 11_000_000), []string{"Content-Type", xml}, 413},
		{"POST", "/cminmsgs/send", inside, "{}", []string{"Content-Type", "application/json"}, 415},
		{"POST", "/cminmsgs/send", inside, "<MSG>away</MSG>", []string{"Content-Type", xml}, 503},
		{"POST", "/schd/sync", inside, window, asJSON, 200},
		{"POST", "/schd/sync", inside, "", asJSON, 400},
		{"POST", "/schd/sync", inside, `{"startTime":"2026-11-30 00:00","endTime":"2026-12-04 00:00"}`, asJSON, 400},
		{"POST", "/schd/sync", inside, `{"startTime":"2026-11-30 00:00","endTime":"11:30 PM"}`, asJSON, 400},
		{"POST", "/schd/sync", outside, window, asJSON, 401},
		{"POST", "/schd/sync", inside, strings.ReplaceAll(window, "2026", "2099"), asJSON, 503},
		{"GET", "/all/flights", inside, "", nil, 200},
		{"GET", "/all/flights?limit=0", inside, "", nil, 400},
		{"GET", "/all/flights", outside, "", nil, 401},
		{"GET", "/flights", inside, "", nil, 200},
		{"GET", "/flights?after=x", inside, "", nil, 400},
		{"GET", "/flights", outside, "", nil, 401},
		{"GET", "/flights/15", inside, "", nil, 200},
		{"GET", "/flights/x", inside, "", nil, 400},
		{"GET", "/flights/17", inside, "", nil, 404},
		{"GET", "/flights/16", inside, "", nil, 410},
		{"GET", "/flights/18", inside, "", nil, 410},
		{"GET", "/flights/18/history", inside, "", nil, 200},
		{"GET", "/flights/15/history", inside, "", nil, 200},
		{"GET", "/flights/15/history?limit=1", inside, "", nil, 200},
		{"GET", "/flights/16/history", inside, "", nil, 200},
		{"GET", "/flights/x/history", inside, "", nil, 400},
		{"GET", "/flights/17/history", inside, "", nil, 404},
		{"GET", "/refdata", inside, "", nil, 200},
		{"GET", "/refdata", outside, "", nil, 401},
		{"GET", "/refdata/slst?limit=1", inside, "", nil, 200},
		{"GET", "/refdata/SLST", inside, "", []string{"If-None-Match", `"SLST-3"`}, 304},
		{"GET", "/refdata/SLST?after=x", inside, "", nil, 400},
		{"GET", "/refdata/AIRL", inside, "", nil, 404},
		{"GET", "/refdata/SLST?after=Mi4yMDg", inside, "", nil, 409},
		{"GET", "/ops/summary", inside, "", nil, 200},
		{"GET", "/ops/messages", inside, "", nil, 200},
		{"GET", "/ops/messages?state=x", inside, "", nil, 400},
		{"GET", "/ops/messages/1", inside, "", nil, 200},
		{"GET", "/ops/messages/2", inside, "", nil, 404},
		{"GET", "/ops/messages?stat=DEAD", inside, "", nil, 400},
		{"GET", "/ops/messages?type=FLOP&styp=psdt&flid=15&error=x&identityReuse=wrapped&late=false&markState=OWED", inside, "", nil, 200},
		{"GET", "/ops/messages/1/changes", inside, "", nil, 200},
		{"GET", "/ops/messages/1/changes?after=x", inside, "", nil, 400},
		{"GET", "/ops/messages/2/changes", inside, "", nil, 404},
		{"GET", "/ops/holes?open=true&limit=1", inside, "", nil, 200},
		{"GET", "/ops/holes?open=x", inside, "", nil, 400},
		{"GET", "/ops/events/1", inside, "", nil, 200},
		{"GET", "/ops/events/2", inside, "", nil, 200},
		{"GET", "/ops/events/x", inside, "", nil, 400},
		{"GET", "/ops/events/99", inside, "", nil, 404},
		{"GET", "/ops/events?limit=1", inside, "", nil, 200},
		{"GET", "/ops/events?kind=x", inside, "", nil, 400},
		{"GET", "/ops/events", inside, "", nil, 200},
		{"POST", "/ops/replay", inside, `{"ids":[1,2],"dryRun":true,"reason":"x"}`, operator, 200},
		{"POST", "/ops/replay", inside, `{"reason":"x"}`, operator, 400},
		{"POST", "/ops/replay", inside, `{"ids":[1],"reason":"x"}`, nil, 401},
		{"GET", "/ops/maintenance", inside, "", nil, 200},
		{"GET", "/ops/consistency", inside, "", nil, 200},
		{"GET", "/ops/consistency?limit=1", inside, "", nil, 200},
		{"GET", "/ops/consistency?limit=0", inside, "", nil, 400},
		{"POST", "/ops/maintenance/archive", inside, `{"reason":"x"}`, operator, 202},
		{"POST", "/ops/maintenance/nothing", inside, `{"reason":"x"}`, operator, 404},
		{"POST", "/ops/maintenance/refdata", inside, `{"reason":"x"}`, operator, 409},
		{"POST", "/ops/maintenance/archive", inside, `{}`, operator, 400},
		{"POST", "/ops/maintenance/archive", inside, `{"reason":"x"}`, nil, 401},
		{"GET", "/ops/requests", inside, "", nil, 200},
		{"GET", "/ops/requests?kind=RQFD-NONE&state=registered&limit=1", inside, "", nil, 200},
		{"GET", "/ops/requests?state=x", inside, "", nil, 400},
		{"GET", "/ops/requests?kind=FOO", inside, "", nil, 400},
		{"POST", "/ops/requests", inside, `{"kind":"RQFD-NONE","startTime":"2026-11-30 00:00","endTime":"2026-11-30 23:59","reason":"INC-7"}`, operator, 202},
		{"POST", "/ops/requests", inside, `{"kind":"RQFD-NONE","reason":"INC-7"}`, operator, 400},
		{"POST", "/ops/requests", inside, `{"kind":"RQRD-REGN","reason":"INC-7"}`, operator, 400},
		{"POST", "/ops/requests", inside, `{"kind":"RQRD-REGN","startTime":"2026-11-30 00:00","reason":"INC-7"}`, operator, 400},
		{"POST", "/ops/requests", inside, `{"kind":"RQFD-NONE"}`, nil, 401},
		{"GET", "/ops/audit", inside, "", operator, 200},
		{"GET", "/ops/audit?limit=x", inside, "", operator, 400},
		{"GET", "/ops/audit", inside, "", nil, 401},
		{"POST", "/ops/backfill/resume", inside, `{"ids":[1,99],"reason":"INC-7"}`, jsonOf(operator), 200},
		{"POST", "/ops/backfill/resume", inside, `{"ids":[],"reason":"INC-7"}`, jsonOf(operator), 400},
		{"POST", "/ops/backfill/resume", inside, `{"ids":[1],"reason":"INC-7"}`, jsonOf(nil), 401},
		{"POST", "/ops/lane/reseed", inside, `{"watermark":"first","reason":"INC-7"}`, jsonOf(operator), 400},
		{"POST", "/ops/lane/reseed", inside, `{"watermark":"7","reason":"INC-7"}`, jsonOf(operator), 409},
		{"POST", "/ops/lane/reseed", inside, `{"watermark":"min","reason":"INC-7","dryRun":true}`, jsonOf(operator), 200},
		{"POST", "/ops/lane/reseed", inside, `{"watermark":"min","reason":"INC-7"}`, jsonOf(nil), 401},
		{"GET", "/healthz", outside, "", nil, 200},
		{"GET", "/readyz", inside, "", nil, 503},
		{"HEAD", "/healthz", outside, "", nil, 200},
		{"HEAD", "/readyz", inside, "", nil, 503},
		{"GET", "/readyz", outside, "", nil, 401},
		{"GET", "/metrics", inside, "", nil, 200},
		{"GET", "/openapi.json", inside, "", nil, 200},
		{"GET", "/", inside, "", nil, 200},
	}
	for _, c := range cases {
		rec := ask(t, h, c.method, c.target, c.from, c.body, c.headers...)
		require.Equal(t, c.status, rec.Code, "%s %s: %s", c.method, c.target, rec.Body)
		validate(t, router, request(t, c.method, c.target, c.from, c.body, c.headers...), rec)
	}
}

func TestFailuresAreAsDescribed(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	pool.Close() // our database is away
	limited := serve(t, pool, func(c *server.Config) { c.RateLimit, c.RateBurst = 0.001, 1 })
	away := serve(t, pool, func(c *server.Config) { c.TrustedCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	_, router := described(t, away)
	for _, target := range []string{"/all/flights", "/flights", "/flights/15", "/flights/15/history", "/ops/summary", "/ops/messages", "/ops/messages/1", "/ops/messages/1/changes", "/ops/events", "/ops/events/1", "/ops/holes", "/ops/requests", "/refdata", "/refdata/SLST"} {
		rec := ask(t, away, http.MethodGet, target, "10.0.0.1:1", "")
		require.Equal(t, http.StatusServiceUnavailable, rec.Code, "%s: %s", target, rec.Body)
		validate(t, router, request(t, http.MethodGet, target, "10.0.0.1:1", ""), rec)

		ask(t, limited, http.MethodGet, target, "10.0.0.1:1", "")
		rec = ask(t, limited, http.MethodGet, target, "10.0.0.1:1", "")
		require.Equal(t, http.StatusTooManyRequests, rec.Code, target)
		validate(t, router, request(t, http.MethodGet, target, "10.0.0.1:1", ""), rec)
	}
	require.Equal(t, http.StatusOK, ask(t, away, http.MethodGet, "/", "10.0.0.1:1", "").Code, "the console says what is wrong")
}

// validate holds the answer against the description: status, media type and, where it is JSON, every member.
func validate(t *testing.T, router routers.Router, r *http.Request, rec *httptest.ResponseRecorder) {
	t.Helper()
	route, params, err := router.FindRoute(r)
	require.NoError(t, err, r.URL)
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 rec.Code,
		Header:                 rec.Header(),
		Body:                   io.NopCloser(bytes.NewReader(rec.Body.Bytes())),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html"),
		},
	}
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), in), "%s %s: %s", r.Method, r.URL, rec.Body)
}
