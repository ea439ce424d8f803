package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"msgexchange/deploy/compare"
	"msgexchange/workers/kafka"
)

// flights makes a set of JSON flights.
func flights(t *testing.T, texts ...string) compare.Set {
	t.Helper()
	name := filepath.Join(t.TempDir(), "flights.json")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(texts, "\n")), 0o600))
	set, err := compare.Reader{}.Read(t.Context(), name)
	require.NoError(t, err)
	return set
}

func tolerances(t *testing.T, text string) []compare.Tolerance {
	t.Helper()
	list, err := compare.ReadTolerances(strings.NewReader(text))
	require.NoError(t, err)
	return list
}

func TestEveryDifferenceIsToldOnce(t *testing.T) {
	t.Parallel()
	left := flights(t,
		`{"flid":1,"flno":"CA1","sodt":"2026-11-30T09:00:00+08:00","psdt":[{"psno":1,"stnd":"212"},{"psno":2,"stnd":"1"}]}`,
		`{"flid":2,"flno":"CA2"}`, `{"flid":10,"gate":"A"}`)
	right := flights(t,
		`{"flid":1,"flno":"CA1","sodt":"2026-11-30T01:00:00Z","psdt":[{"psno":1,"stnd":"213"},{"psno":2,"stnd":"1"}],"abdg":"212"}`,
		`{"flid":3,"flno":"CA3"}`, `{"flid":10,"gate":"A"}`)
	r := compare.Compare(left, right, nil)
	var got []string
	for _, d := range r.Unexplained {
		got = append(got, d.String())
	}
	require.Empty(t, cmp.Diff([]string{
		`1 abdg: missing on the left, "212"`, `1 psdt[0].stnd: "212", "213"`, `2: only on the left`, `3: only on the right`,
	}, got))
	require.Equal(t, 1, r.Same, "the same moment in two zones is no difference")
}

func TestTolerancesExplainWhatTheyName(t *testing.T) {
	t.Parallel()
	left := flights(t, `{"flid":1,"psdt":[{"stnd":"1"}],"updatedAt":"2026-11-30T01:00:00Z"}`, `{"flid":2}`)
	right := flights(t, `{"flid":1,"psdt":[{"stnd":"2"}],"updatedAt":"2026-11-30T01:00:09Z","abdg":"1"}`, `{"flid":3}`)
	all := `
- { field: updatedAt, why: two systems write at two moments }
- { field: psdt, ids: ["1"], on: both, why: INC-7 }
- { field: abdg, on: right, why: the replaced system derives none }
- { ids: ["2", "3"], why: INC-8 }
- { field: gtdt, why: mended long ago }
`
	r := compare.Compare(left, right, tolerances(t, all))
	require.Empty(t, r.Unexplained)
	require.Len(t, r.Explained, 5)
	require.Equal(t, []compare.Tolerance{{Field: "gtdt", Why: "mended long ago"}}, r.Unused)
	var out bytes.Buffer
	require.NoError(t, compare.Print(&out, r))
	require.Contains(t, out.String(), "explained 2 times: INC-8")
	require.Contains(t, out.String(), "take it out: gtdt")

	r = compare.Compare(left, right, tolerances(t, `[{ field: psdt, ids: ["9"], why: another flight }, { field: abdg, on: left, why: the other side }]`))
	require.Len(t, r.Unexplained, 5)
}

func TestTolerancesWithoutReasonAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{ field: abdg }]`:                      "why: required",
		`[{ field: abdg, on: top, why: x }]`:     "none of both, left, right",
		`[{ why: whatever is missing }]`:         "every missing record",
		`[{ field: abdg, why: x, colour: red }]`: "colour",
	} {
		_, err := compare.ReadTolerances(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

// What was on its way at the first look is no difference; what stayed as it was is.
func TestOnlyWhatLastsCounts(t *testing.T) {
	t.Parallel()
	old, now := flights(t, `{"flid":1,"gate":"A"}`, `{"flid":2,"gate":"A"}`), flights(t, `{"flid":1,"gate":"B"}`, `{"flid":2,"gate":"B"}`)
	first := compare.Compare(old, now, nil)
	second := compare.Compare(flights(t, `{"flid":1,"gate":"B"}`, `{"flid":2,"gate":"A"}`), now, nil)
	r := compare.Lasting(first, second)
	require.Len(t, r.Unexplained, 1)
	require.Equal(t, "2", r.Unexplained[0].ID)
}

// Whatever the flights: a set is the same as itself, and turning the sides round turns the differences round.
func TestProperties(t *testing.T) {
	t.Parallel()
	value := rapid.OneOf(rapid.Just[any]("x"), rapid.Just[any](1.0), rapid.Just[any](nil), rapid.Just[any]([]any{"a", map[string]any{"b": "c"}}), rapid.Just[any]([]any{"a"}))
	record := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), value)
	set := rapid.Custom(func(t *rapid.T) compare.Set {
		s := compare.Set{}
		for id, r := range rapid.MapOf(rapid.SampledFrom([]string{"1", "2", "30"}), record).Draw(t, "set") {
			s[id] = r
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := set.Draw(t, "a"), set.Draw(t, "b")
		if r := compare.Compare(a, a, nil); len(r.Unexplained) > 0 || r.Same != len(a) {
			t.Fatalf("differs from itself: %+v", r)
		}
		ab, ba := compare.Compare(a, b, nil), compare.Compare(b, a, nil)
		for i := range ba.Unexplained {
			d := &ba.Unexplained[i]
			d.Left, d.Right = d.Right, d.Left
			d.On = map[compare.Where]compare.Where{compare.Left: compare.Right, compare.Right: compare.Left, compare.Both: compare.Both}[d.On]
		}
		if diff := cmp.Diff(ab.Unexplained, ba.Unexplained); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestFilesInEveryForm(t *testing.T) {
	t.Parallel()
	want := flights(t, `{"flid":1,"flno":"CA1"}`, `{"flid":2,"flno":"CA2"}`)
	require.Len(t, want, 2)
	for _, text := range []string{
		`{"is_success":true,"body":[{"flid":1,"flno":"CA1"},{"flid":2,"flno":"CA2"}]}`,
		`{"flights":[{"flid":1,"flno":"CA1"}],"next":"x"} {"flights":[{"flid":2,"flno":"CA2"}],"next":null}`,
		`[{"flid":1,"flno":"CA1"},{"flid":2,"flno":"CA2"}]`,
	} {
		require.Empty(t, cmp.Diff(want, flights(t, text)), text)
	}
	name := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"flno":"CA1"}`), 0o600))
	_, err := compare.Reader{}.Read(t.Context(), name)
	require.ErrorContains(t, err, `no number "flid"`)
}

func TestPagesOfAURL(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page := 1
		if r.URL.Query().Get("after") == "more" {
			page = 2
		} else {
			w.Header().Set("X-Next-Cursor", "more")
		}
		_, _ = fmt.Fprintf(w, `{"is_success":true,"body":[{"flid":%d}]}`, page)
	}))
	t.Cleanup(s.Close)
	set, err := compare.Reader{Client: s.Client(), Token: "secret"}.Read(t.Context(), s.URL+"/all/flights")
	require.NoError(t, err)
	require.Len(t, set, 2)
	_, err = compare.Reader{Client: s.Client()}.Read(t.Context(), s.URL+"/all/flights")
	require.ErrorContains(t, err, "401")
}

// Of schd the newest state of each flight counts, of msg every change, whatever ids its events have.
func TestTopics(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "schd", "msg", "empty"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	put := func(topic, key string, value any) {
		var text []byte
		if value != nil {
			text, err = json.Marshal(value)
			require.NoError(t, err)
		}
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: text}).FirstErr())
	}
	put("schd", "1", compare.Record{"flid": 1, "stateVersion": 1})
	put("schd", "2", compare.Record{"flid": 2, "stateVersion": 1})
	put("schd", "1", compare.Record{"flid": 1, "stateVersion": 2})
	put("schd", "2", nil)
	put("msg", "1", compare.Record{"flid": 1, "eventId": 7, "messageId": 4711, "change": "UPDATE"})

	cfg := kafka.Defaults()
	cfg.Brokers = c.ListenAddrs()
	r := compare.Reader{Kafka: cfg}
	for topic, want := range map[string]compare.Set{
		"schd":  {"1": {"flid": 1.0, "stateVersion": 2.0}},
		"msg":   {"4711/1": {"flid": 1.0, "messageId": 4711.0, "change": "UPDATE"}},
		"empty": {},
	} {
		got, err := r.Read(t.Context(), "kafka:"+topic)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got), topic)
	}
	_, err = r.Read(t.Context(), "kafka:missing")
	require.ErrorContains(t, err, "missing")
}
