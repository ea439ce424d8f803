package systemtest

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected files anew")

// address gives the HTTP address a pod says it serves on.
func (p *pod) address() string {
	p.t.Helper()
	var url string
	eventually(p.t, 20*time.Second, func() error {
		var ok bool
		if url, ok = p.Address(); !ok {
			return fmt.Errorf("pod %s does not serve yet", p.Name)
		}
		return nil
	})
	return url
}

var seqnOf = regexp.MustCompile(`<SEQN>0*(\d+)</SEQN>`)

// bySEQN lists the samples in the order in which their sender numbered them, the schedule first.
func bySEQN(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/samples/*.xml")
	require.NoError(t, err)
	seqn := map[string]int{}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".xml")
		if strings.HasPrefix(name, "RQ") {
			continue // requests are ours to send
		}
		m := seqnOf.FindStringSubmatch(sample(t, name))
		require.NotNil(t, m, name)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		seqn[name] = n
		names = append(names, name)
	}
	seqn["SCHD-DNLD"] = 0
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(seqn[a], seqn[b]), cmp.Compare(a, b)) })
	return names
}

// Every sample of the dictionary, fed in its sender's order through the real binary, ends in the state and shows the values
// that testdata/samples.json says; what is there was read against the dictionary by hand.
func TestSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.start(t, "a", "MSGX_PIPELINE_BACKOFF=10ms", "MSGX_PIPELINE_UNSUPPORTED_ATTEMPTS=1")
	names := bySEQN(t)
	nameOf := map[int64]string{}
	for _, name := range names {
		nameOf[w.put(t, sample(t, name))] = name
	}
	w.settled(t, len(names), 60*time.Second)

	type result struct {
		Messages map[string]string          `json:"messages"`
		Flights  map[string]json.RawMessage `json:"flights"`
		Gone     []string                   `json:"gone"`
		History  map[string][]string        `json:"history"` // by FLID, the last first: sample, change and version
	}
	got := result{Messages: map[string]string{}, Flights: map[string]json.RawMessage{}, History: map[string][]string{}}
	rows, err := w.pg.Query(t.Context(), "SELECT msg_id, concat_ws(' ', state, error_class, root_error_class, skip_reason) FROM proc_state")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		var state string
		require.NoError(t, rows.Scan(&id, &state))
		got.Messages[nameOf[id]] = state
	}
	require.NoError(t, rows.Err())
	updatedAt := regexp.MustCompile(`,"updatedAt":"[^"]+"`)
	for flid := 82600101; flid <= 82600130; flid++ {
		status, body := get(t, fmt.Sprintf("%s/flights/%d", pod.address(), flid))
		switch status {
		case 200:
			got.Flights[strconv.Itoa(flid)] = json.RawMessage(updatedAt.ReplaceAllString(body, ""))
		case 410:
			got.Gone = append(got.Gone, strconv.Itoa(flid))
		default:
			require.Equal(t, 404, status, body)
		}
		status, body = get(t, fmt.Sprintf("%s/flights/%d/history?limit=1000", pod.address(), flid))
		if status == 404 {
			continue
		}
		require.Equal(t, 200, status, body)
		var history struct {
			Items []struct {
				MessageID    int64
				Change       *string
				StateVersion int64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &history))
		for _, h := range history.Items {
			change := "unseen"
			if h.Change != nil {
				change = *h.Change
			}
			key := strconv.Itoa(flid)
			got.History[key] = append(got.History[key], fmt.Sprintf("%s %s v%d", nameOf[h.MessageID], change, h.StateVersion))
		}
	}
	text, err := json.MarshalIndent(got, "", " ")
	require.NoError(t, err)
	file := filepath.Join("testdata", "samples.json")
	if *update {
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text))
}
