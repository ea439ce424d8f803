package flights_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/flights"
	"msgexchange/http/problem"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Run(m)) }

// zone is the airport's.
func zone() *time.Location { return time.FixedZone("CST", 8*60*60) }

func noon() time.Time { return time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC) }

// plain is a flight that leaves n minutes after noon.
func plain(flid int64, n int) *flight.Flight {
	sodt := noon().Add(time.Duration(n) * time.Minute)
	return &flight.Flight{
		FLID: flid, OperationDay: "2026-11-30", Version: 3, UpdatedAt: noon(),
		LastMessage: message.Position{ID: 4711}, CreatedBy: message.Position{ID: 4700},
		Provenance: map[string]message.Position{"flno": {ID: 4700}, "stnd": {ID: 4711}},
		Lists:      map[string][]sis.Entry{},
		Scalars: sis.Fields{
			"flno": sis.TextValue(fmt.Sprintf("CZ%d", flid)), "mvin": sis.TextValue("A"), "sodt": sis.MomentValue(sodt), "stnd": sis.TextValue("208"),
		},
	}
}

func setup(t *testing.T, all ...*flight.Flight) (*flights.API, *pgxpool.Pool) {
	t.Helper()
	pool, st := dbtest.New(t), store.New(zone())
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		var saves []store.Save
		for _, f := range all {
			saves = append(saves, store.Save{After: f})
		}
		return store.WriteAll(t.Context(), tx, st.SaveFlights(saves))
	}))
	return flights.New(pool, st, zone()), pool
}

func get(t *testing.T, h func(*gin.Context) error, target string, params ...gin.Param) (*httptest.ResponseRecorder, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	c.Params = params
	return rec, h(c)
}

// exactly compares bytes: old callers do.
func exactly(t *testing.T, got *httptest.ResponseRecorder, want string) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got.Body.String()))
}

func TestAll_byteForByte(t *testing.T) {
	t.Parallel()
	child := plain(17, 0)
	child.Scalars["maid"] = sis.NumberValue(15)
	gone := plain(18, 0)
	gone.DeletedAt, gone.DeletedBy = noon(), message.Position{ID: 4712}
	api, pool := setup(t, plain(16, 5), plain(15, 0), child, gone)
	_, err := pool.Exec(t.Context(), `INSERT INTO proc_state (msg_id, state, created_at, updated_at, finished_at) VALUES
		(4711, 'SUCCEEDED', $1, $1, $1), (4712, 'FAILED', $1, $1, NULL), (4713, 'SUCCEEDED', $1, $1, $1)`, noon())
	require.NoError(t, err)

	got, err := get(t, api.All, "/all/flights")
	require.NoError(t, err)
	exactly(t, got, `{"is_success":true,"body":[`+
		`{"flid":15,"flno":"CZ15","mvin":"A","sodt":"2026-11-30T12:00:00+08:00","stnd":"208","operationDay":"2026-11-30","stateVersion":3,"lastMessageId":4711,"updatedAt":"2026-11-30T12:00:00.000+08:00"},`+
		`{"flid":16,"flno":"CZ16","mvin":"A","sodt":"2026-11-30T12:05:00+08:00","stnd":"208","operationDay":"2026-11-30","stateVersion":3,"lastMessageId":4711,"updatedAt":"2026-11-30T12:00:00.000+08:00"}`+
		`]}`)
	require.Equal(t, "4711", got.Header().Get("X-Consistency-Point"), "4712 is not finished")
	require.Empty(t, got.Header().Values("X-Next-Cursor"))
	require.Equal(t, "application/json", got.Header().Get("Content-Type"))

	got, err = get(t, api.All, "/all/flights?operationDay=2026-12-01")
	require.NoError(t, err)
	exactly(t, got, `{"is_success":true,"body":[]}`)
}

func TestAll_pages(t *testing.T) {
	t.Parallel()
	var all []*flight.Flight
	for i := range 7 {
		all = append(all, plain(int64(100-i), i/2)) // pairs leave together: FLID decides
	}
	api, _ := setup(t, all...)
	var seen []int64
	for after, more := "", true; more; {
		got, err := get(t, api.All, "/all/flights?limit=3&after="+url.QueryEscape(after))
		require.NoError(t, err)
		var page struct{ Body []struct{ FLID int64 } }
		require.NoError(t, json.Unmarshal(got.Body.Bytes(), &page))
		for _, f := range page.Body {
			seen = append(seen, f.FLID)
		}
		after = got.Header().Get("X-Next-Cursor")
		more = after != ""
	}
	require.Equal(t, []int64{99, 100, 97, 98, 95, 96, 94}, seen)
}

func TestFind(t *testing.T) {
	t.Parallel()
	api, _ := setup(t, plain(15, 0), plain(16, 5))
	found := func(query string) (flids []int64, next *string) {
		got, err := get(t, api.Find, "/flights?"+query)
		require.NoError(t, err, query)
		var page struct {
			Flights []struct{ FLID int64 }
			Next    *string
		}
		require.NoError(t, json.Unmarshal(got.Body.Bytes(), &page))
		for _, f := range page.Flights {
			flids = append(flids, f.FLID)
		}
		return flids, page.Next
	}
	for query, want := range map[string][]int64{
		"": {15, 16}, "flno=CZ16": {16}, "stand=208&mvin=A": {15, 16}, "mvin=D": nil, "gate=7": nil, "operationDay=2026-11-30": {15, 16},
	} {
		flids, next := found(query)
		require.Equal(t, want, flids, query)
		require.Nil(t, next)
	}
	flids, next := found("limit=1")
	require.Equal(t, []int64{15}, flids)
	flids, next = found("limit=1&after=" + *next)
	require.Equal(t, []int64{16}, flids)
	require.Nil(t, next)
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	api := flights.New(nil, nil, zone())
	_, err := get(t, api.Find, "/flights?flon=CZ16")
	require.ErrorContains(t, err, "flon is not known here", "all flights would be taken for those of CZ16")
	for _, query := range []string{"limit=0", "limit=20001", "limit=many", "after=x", "operationDay=30.11.2026", "operationDay=2026-02-30"} {
		_, err := get(t, api.All, "/all/flights?"+query)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, query)
		_, err = get(t, api.Find, "/flights?"+query)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, query)
	}
	_, err = get(t, api.One, "/flights/x", gin.Param{Key: "flid", Value: "x"})
	require.Equal(t, problem.BadRequest, problem.Of(err).Code)
}

func TestOne(t *testing.T) {
	t.Parallel()
	gone := plain(18, 0)
	gone.DeletedAt, gone.DeletedBy = noon(), message.Position{ID: 4712}
	api, _ := setup(t, plain(15, 0), gone)
	one := func(flid string) (*httptest.ResponseRecorder, error) {
		return get(t, api.One, "/flights/"+flid, gin.Param{Key: "flid", Value: flid})
	}
	got, err := one("15")
	require.NoError(t, err)
	exactly(t, got, `{"flight":{"flid":15,"flno":"CZ15","mvin":"A","sodt":"2026-11-30T12:00:00+08:00","stnd":"208",`+
		`"operationDay":"2026-11-30","stateVersion":3,"lastMessageId":4711,"updatedAt":"2026-11-30T12:00:00.000+08:00"},`+
		`"provenance":{"flno":4700,"stnd":4711}}`)

	_, err = one("77")
	require.Equal(t, problem.NotFound, problem.Of(err).Code)

	_, err = one("18")
	rec := httptest.NewRecorder()
	problem.Write(rec, problem.Of(err))
	require.Equal(t, http.StatusGone, rec.Code)
	require.JSONEq(t, `{"type":"about:blank","title":"Gone","status":410,"code":"GONE","detail":"the flight has been deleted",
		"deletedAt":"2026-11-30T12:00:00+08:00","messageId":4712}`, rec.Body.String())
}

func TestHistory(t *testing.T) {
	t.Parallel()
	gone := plain(18, 0)
	gone.DeletedAt, gone.DeletedBy = noon(), message.Position{ID: 4712}
	api, pool := setup(t, plain(15, 0), gone)
	st := store.New(zone())
	moved := plain(18, 0)
	moved.Version, moved.Scalars["stnd"] = 4, sis.TextValue("209")
	meta := func(styp string) message.Meta { return message.Meta{TYPE: "FLOP", STYP: styp, DTTM: noon()} }
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		return store.WriteAll(t.Context(), tx, st.InsertHistory([]store.Deed{
			{Pos: message.Position{ID: 4711}, Meta: meta("STND"), Change: flight.Change{Op: flight.Update, Before: plain(18, 0), After: moved, Fields: []string{"stnd", "reno"}}},
			{Pos: message.Position{ID: 4713}, Meta: meta("STND"), Change: flight.Change{Before: moved, After: moved}},
			{Pos: message.Position{Generation: 1, ID: 2}, Meta: meta("FDEL"), Change: flight.Change{Op: flight.Delete, Before: moved, After: gone}},
		}, noon()))
	}))
	read := func(query string) string {
		got, err := get(t, api.History, "/flights/18/history?"+query, gin.Param{Key: "flid", Value: "18"})
		require.NoError(t, err, query)
		return got.Body.String()
	}
	item := func(what string) string {
		return `{"flid":18,"messageId":` + what + `}`
	}
	const at = `"dttm":"2026-11-30T12:00:00+08:00","changedAt":"2026-11-30T12:00:00+08:00"`
	deleted := item(`"1:2","kind":"FLOP-FDEL","change":"DELETE","stateVersion":3,` + at + `,"before":{},"fields":{}`)
	silent := item(`4713,"kind":"FLOP-STND","change":null,"stateVersion":4,` + at + `,"before":{},"fields":{}`)
	updated := item(`4711,"kind":"FLOP-STND","change":"UPDATE","stateVersion":4,` + at + `,"before":{"stnd":"208","reno":null},"fields":{"stnd":"209","reno":null}`)

	require.JSONEq(t, `{"items":[`+deleted+`,`+silent+`,`+updated+`],"next":null}`, read(""), "of a deleted flight too")
	var page struct {
		Items []json.RawMessage
		Next  string
	}
	require.NoError(t, json.Unmarshal([]byte(read("limit=2")), &page))
	require.Len(t, page.Items, 2)
	require.JSONEq(t, `{"items":[`+updated+`],"next":null}`, read("limit=2&after="+page.Next))

	for flid, want := range map[string]problem.Code{"77": problem.NotFound, "x": problem.BadRequest} {
		_, err := get(t, api.History, "/flights/"+flid+"/history", gin.Param{Key: "flid", Value: flid})
		require.Equal(t, want, problem.Of(err).Code, flid)
	}
	got, err := get(t, api.History, "/flights/15/history", gin.Param{Key: "flid", Value: "15"})
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[],"next":null}`, got.Body.String())
}

// A flight in the history is gone, not unknown, and its history is what is kept of it.
func TestSwept(t *testing.T) {
	t.Parallel()
	last := plain(18, 0)
	last.LastMessage = message.Position{ID: 4711}
	gone := plain(19, 0)
	gone.DeletedAt, gone.DeletedBy = noon(), message.Position{ID: 4712}
	api, pool := setup(t, last, gone)
	st := store.New(zone())
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		meta := message.Meta{TYPE: "SCHD", STYP: "DNLD", DTTM: noon()}
		deeds := []store.Deed{{Pos: message.Position{ID: 4711}, Meta: meta, Change: flight.Change{Op: flight.Create, After: last, Fields: []string{"stnd"}}}}
		if err := store.WriteAll(t.Context(), tx, st.InsertHistory(deeds, noon())); err != nil {
			return err
		}
		return st.Retire(t.Context(), tx, []store.Retiree{{Flight: last, Rule: "departed", Version: 4}, {Flight: gone, Rule: "deleted", Version: 3}}, noon())
	}))
	one := func(flid string) map[string]any {
		_, err := get(t, api.One, "/flights/"+flid, gin.Param{Key: "flid", Value: flid})
		require.Equal(t, problem.Gone, problem.Of(err).Code)
		return problem.Of(err).More
	}
	require.Equal(t, "departed", one("18")["rule"])
	require.Equal(t, message.Position{ID: 4711}, one("18")["messageId"])
	require.NotContains(t, one("18"), "deletedAt")
	require.Equal(t, message.Position{ID: 4712}, one("19")["messageId"])
	require.Contains(t, one("19"), "deletedAt")

	got, err := get(t, api.History, "/flights/18/history", gin.Param{Key: "flid", Value: "18"})
	require.NoError(t, err)
	var page struct {
		Items []json.RawMessage
		Swept []struct {
			OperationDay, Rule string
			StateVersion       int64
			Flight             struct{ Stnd string }
			Provenance         map[string]int64
			Changes            []struct {
				Change, Kind string
				MessageID    int64
			}
		}
	}
	require.NoError(t, json.Unmarshal(got.Body.Bytes(), &page))
	require.Empty(t, page.Items)
	require.Len(t, page.Swept, 1)
	life := page.Swept[0]
	require.Equal(t, []any{"2026-11-30", "departed", int64(4), "208"}, []any{life.OperationDay, life.Rule, life.StateVersion, life.Flight.Stnd})
	require.Len(t, life.Changes, 1)
	require.Equal(t, []any{"CREATE", "SCHD-DNLD", int64(4711)}, []any{life.Changes[0].Change, life.Changes[0].Kind, life.Changes[0].MessageID})
}

// Long lists wait for each other: the pool is the pipeline's first. A caller who stops waiting is told so.
func TestAll_busy(t *testing.T) {
	t.Parallel()
	api, pool := setup(t, plain(15, 0))
	locked, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = locked.Exec(t.Context(), `LOCK TABLE flight_schd IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	answers := make(chan error, 3)
	for range 2 {
		go func() {
			_, err := get(t, api.All, "/all/flights")
			answers <- err
		}()
	}
	require.Eventually(t, func() bool {
		var waiting int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == 2
	}, 10*time.Second, 10*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(ctx, http.MethodGet, "/all/flights", http.NoBody)
	require.Equal(t, problem.Unavailable, problem.Of(api.All(c)).Code)

	require.NoError(t, locked.Rollback(t.Context()))
	for range 2 {
		require.NoError(t, <-answers)
	}
}
