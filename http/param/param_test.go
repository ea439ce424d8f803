package param_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/http/param"
	"msgexchange/jobs/fault"
)

func query(t *testing.T, s string) *param.Query {
	t.Helper()
	v, err := url.ParseQuery(s)
	require.NoError(t, err)
	return param.Of(v)
}

func TestQuery(t *testing.T) {
	t.Parallel()
	q := query(t, "limit=7&msgId=15&from=2026-11-30T08:00:00%2B08:00&to=2026-11-30T09:00:00+08:00&operationDay=2026-11-30&class=infra&flno=%20CZ3101%20&other=x")
	require.Equal(t, 7, q.Limit(100, 1000))
	require.Equal(t, int64(15), q.ID("msgId"))
	require.True(t, q.Time("from").Equal(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)))
	require.True(t, q.Time("to").Equal(time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)), "a plus that came as a space")
	require.Equal(t, "2026-11-30", q.Day("operationDay"))
	require.Equal(t, fault.Infra, param.Word(q, "class", fault.AllClasses()))
	require.Equal(t, "CZ3101", q.Text("flno"))
	require.NoError(t, q.Err())
}

func TestQuery_missing(t *testing.T) {
	t.Parallel()
	q := query(t, "")
	require.Equal(t, 100, q.Limit(100, 1000))
	require.Zero(t, q.ID("msgId"))
	require.True(t, q.Time("from").IsZero())
	require.Empty(t, q.Day("operationDay"))
	require.Empty(t, param.Word(q, "class", fault.AllClasses()))
	_, _, ok := q.Cursor()
	require.False(t, ok)
	require.NoError(t, q.Err())
}

func TestQuery_everyBadOneAtOnce(t *testing.T) {
	t.Parallel()
	q := query(t, "limit=0&msgId=-1&from=yesterday&operationDay=2026-02-30&class=bad&after=%21&flno=a%00b&mvin=%ff")
	q.Limit(100, 1000)
	q.ID("msgId")
	q.Time("from")
	q.Day("operationDay")
	param.Word(q, "class", fault.AllClasses())
	_, _, _ = q.Cursor()
	q.Text("flno")
	q.Text("mvin")
	for _, name := range []string{"limit", "msgId", "from", "operationDay", "class", "after", "flno", "mvin"} {
		require.ErrorContains(t, q.Err(), name+" ")
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, at := range [][2]int64{{1_796_000_000_000_000, 15}, {0, 0}, {-5, 999_999_999_999}} {
		major, minor, ok := query(t, "after="+param.Mark(at[0], at[1])).Cursor()
		require.True(t, ok)
		require.Equal(t, at[0], major)
		require.Equal(t, at[1], minor)
	}
	for _, bad := range []string{"MS4y.", "MS4", "eC55", "MS4yIA"} { // "1." "x.y" "1.2 "
		q := query(t, "after="+bad)
		_, _, ok := q.Cursor()
		require.False(t, ok, bad)
		require.Error(t, q.Err(), bad)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	want := param.Place{At: time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC), Generation: 2, ID: 4711}
	got := param.Of(url.Values{"after": {want.Mark()}})
	require.Equal(t, want, got.Place())
	require.NoError(t, got.Err())
	for _, bad := range []string{"x", "MS4y", param.Mark(1, 2), want.Mark() + "A"} {
		q := param.Of(url.Values{"after": {bad}})
		require.Equal(t, param.Place{}, q.Place())
		require.Error(t, q.Err(), bad)
	}
	require.Equal(t, param.Place{}, param.Of(nil).Place())
}

func TestNoOthers(t *testing.T) {
	t.Parallel()
	q := param.Of(url.Values{"late": {"true"}, "stat": {"DEAD"}, strings.Repeat("x", 500): {""}})
	require.True(t, q.Flag("late"))
	require.Nil(t, q.Choice("archived"))
	q.NoOthers()
	require.ErrorContains(t, q.Err(), "stat is not known here; there are archived, late; xxxx")
	require.Less(t, len(q.Err().Error()), 300)
}

// A slip of the pen in a filter is refused, for its answer would be taken for another's.
func TestQuery_whatCannotBeMeant(t *testing.T) {
	t.Parallel()
	q := query(t, "state=DEAD&state=FAILED&from=2026-11-30T09:00:00Z&to=2026-11-30T08:00:00Z")
	require.Empty(t, q.Text("state"))
	q.Between()
	require.ErrorContains(t, q.Err(), "state is given 2 times; from must be before to")

	q = query(t, "from=2026-11-30T08:00:00Z&to=2026-11-30T09:00:00Z")
	from, to := q.Between()
	require.Equal(t, time.Hour, to.Sub(from))
	for _, half := range []string{"from=2026-11-30T08:00:00Z", "to=2026-11-30T08:00:00Z", ""} {
		open := query(t, half)
		open.Between()
		require.NoError(t, open.Err(), half)
	}
	require.NoError(t, q.Err())
}
