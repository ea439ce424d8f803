package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What River goes on trying in an outage is told once a minute, as a warning: with us an ERROR is what somebody must act on.
func TestRiversErrorsAreWarningsOnceAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := Quiet(slog.New(slog.NewJSONHandler(&out, nil))).With("queue", "head").Handler()
	at := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	say := func(level slog.Level, text string, after time.Duration) {
		if h.Enabled(context.Background(), level) {
			r := slog.NewRecord(at.Add(after), level, text, 0)
			r.AddAttrs(slog.String("err", "connection refused"))
			require.NoError(t, h.Handle(t.Context(), r))
		}
	}
	say(slog.LevelInfo, "producer: Producer job counts", 0)
	say(slog.LevelError, "producer: Error fetching jobs", 0)
	say(slog.LevelError, "producer: Error fetching jobs", 59*time.Second)
	say(slog.LevelWarn, "Elector: lost leadership", 59*time.Second)
	say(slog.LevelError, "producer: Error fetching jobs", time.Minute)

	var told []string
	for line := range bytes.Lines(out.Bytes()) {
		var r struct{ Level, Msg, Text, Err, Queue string }
		require.NoError(t, json.Unmarshal(line, &r))
		require.Equal(t, []string{"WARN", "job queue in trouble", "connection refused", "head"}, []string{r.Level, r.Msg, r.Err, r.Queue})
		told = append(told, r.Text)
	}
	require.Equal(t, []string{"producer: Error fetching jobs", "Elector: lost leadership", "producer: Error fetching jobs"}, told)
}
