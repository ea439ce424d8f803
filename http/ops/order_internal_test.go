package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"msgexchange/db"
	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/problem"
	"msgexchange/jobs"
)

// paint is an order for the tests: it fails when told to.
type paint struct {
	Order
	IDs  []int64 `json:"ids"`
	Fail string  `json:"fail,omitempty"`
}

// doPaint leaves a mark in the database that goes when the transaction does.
func doPaint(ctx context.Context, tx pgx.Tx, o paint) (Done, error) {
	if _, err := tx.Exec(ctx, `INSERT INTO inbox_cursor (lane, updated_at) VALUES ('painted', now())`); err != nil {
		return Done{}, err
	}
	switch o.Fail {
	case "refused":
		return Done{}, problem.New(problem.Conflict, "the paint is wet")
	case "broken":
		return Done{}, errors.New("secret")
	}
	return Done{Answer: Items{Items: []Item{{ID: 1, Result: Queued}}, DryRun: o.DryRun}, Wake: []jobs.Role{jobs.RoleHead}}, nil
}

// bell counts what is woken and rung.
type bell struct{ woken, rung int }

func (b *bell) Wake(_ context.Context, _ pgx.Tx, roles ...jobs.Role) error {
	b.woken += len(roles)
	return nil
}

func (b *bell) Ring(roles ...jobs.Role) { b.rung += len(roles) }

// desk is an API over a database of its own.
func desk(t *testing.T) (*API, *bell, *pgxpool.Pool) {
	t.Helper()
	pool, b := dbtest.New(t), &bell{}
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	return &API{Pool: pool, Store: store.New(time.UTC), Waker: b, Now: func() time.Time { return at }}, b, pool
}

func give(t *testing.T, a *API, text string, set ...func(*http.Request)) (*httptest.ResponseRecorder, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	ctx := access.With(t.Context(), access.Caller{Name: "olga", Role: access.Operator, Peer: netip.MustParseAddr("10.1.2.3")})
	c.Request = httptest.NewRequestWithContext(ctx, http.MethodPost, "/ops/paint", strings.NewReader(text))
	for _, f := range set {
		f(c.Request)
	}
	return rec, serve(a, c, http.StatusOK, "paint", doPaint)
}

// audited is the only row of the audit, its JSON as text.
func audited(t *testing.T, pool *pgxpool.Pool) (row store.AuditRow) {
	t.Helper()
	var rows []store.AuditRow
	require.NoError(t, db.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		rows, err = store.New(time.UTC).AuditRows(t.Context(), tx, store.AuditFilter{Page: store.Page{Limit: 10}})
		return err
	}))
	require.Len(t, rows, 1)
	return rows[0]
}

func painted(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM inbox_cursor`).Scan(&n))
	return n
}

func TestOrder_doneAndAudited(t *testing.T) {
	t.Parallel()
	a, b, pool := desk(t)
	rec, err := give(t, a, `{"ids":[1,2],"reason":"INC-7"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[{"id":1,"result":"QUEUED"}],"dryRun":false}`, rec.Body.String())
	require.Equal(t, bell{1, 1}, *b)
	require.Equal(t, 1, painted(t, pool))
	row := audited(t, pool)
	require.Equal(t, []any{"olga", "10.1.2.3", "paint", "INC-7", false}, []any{row.Actor, row.Peer, row.Action, row.Reason, row.DryRun})
	require.JSONEq(t, `{"ids":[1,2]}`, string(row.Scope))
	require.JSONEq(t, rec.Body.String(), string(row.Result))
	require.True(t, a.Now().Equal(row.At))
}

func TestOrder_dryRunLeavesOnlyItsAudit(t *testing.T) {
	t.Parallel()
	a, b, pool := desk(t)
	rec, err := give(t, a, `{"ids":[1],"dryRun":true,"reason":"look first"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[{"id":1,"result":"QUEUED"}],"dryRun":true}`, rec.Body.String())
	require.Equal(t, bell{}, *b)
	require.Zero(t, painted(t, pool))
	require.True(t, audited(t, pool).DryRun)
}

func TestOrder_refusedLeavesOnlyItsAudit(t *testing.T) {
	t.Parallel()
	for fail, want := range map[string]string{
		"refused": `{"refused":"CONFLICT","why":"the paint is wet"}`,
		"broken":  `{"refused":"INTERNAL","why":"the request failed; the log says why"}`,
	} {
		t.Run(fail, func(t *testing.T) {
			t.Parallel()
			a, b, pool := desk(t)
			_, err := give(t, a, `{"reason":"x","fail":"`+fail+`"}`)
			require.Error(t, err)
			require.Equal(t, bell{}, *b)
			require.Zero(t, painted(t, pool))
			require.JSONEq(t, want, string(audited(t, pool).Result))
		})
	}
}

func TestOrder_notUnderstood(t *testing.T) {
	t.Parallel()
	a := &API{} // nothing is touched
	long, err := json.Marshal(strings.Repeat("x", 501))
	require.NoError(t, err)
	for text, want := range map[string]string{
		``:                                "it is no JSON",
		`{`:                               "it is no JSON",
		`{"ids":[1]}`:                     "reason is needed",
		`{"ids":[1],"reason":" "}`:        "reason is needed",
		`{"reason":` + string(long) + `}`: "longer than 500",
		`{"ids":["1"],"reason":"x"}`:      "ids is a string",
		`{"idz":[1],"reason":"x"}`:        `unknown field "idz"`,
		`{"reason":"x"}{}`:                "something follows",
		`{"reason":"a\u0000b"}`:           "NUL",
	} {
		_, err := give(t, a, text)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, text)
		require.Contains(t, problem.Of(err).Detail, want, text)
	}
	_, err = read[ReplayOrder](httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"class":"INFRA","from":"yesterday","reason":"x"}`)))
	require.ErrorContains(t, err, "yesterday is no time like 2026-11-30T08:00:00+08:00")
	require.NotContains(t, problem.Of(err).Detail, "2006")
	_, err = give(t, a, `{"reason":"x"}`, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	require.Equal(t, problem.UnsupportedMediaType, problem.Of(err).Code)
	_, err = give(t, a, `{"reason":"`+string(bytes.Repeat([]byte("x"), maxOrderBytes))+`"}`)
	require.Equal(t, problem.TooLarge, problem.Of(err).Code)
}
