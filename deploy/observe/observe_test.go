package observe_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/deploy/observe"
)

func TestLoggerWritesJSONWithServiceAndUTC(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := observe.NewLogger(&out, observe.Log{Level: slog.LevelInfo, Format: "json"}, "msgexchangeapi")
	log.Debug("not written")
	log.Info("message processed", slog.Int64("msg_id", 4711))

	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record), "exactly one record")
	require.Equal(t, "message processed", record["msg"])
	require.Equal(t, "msgexchangeapi", record["service"])
	require.InDelta(t, 4711, record["msg_id"], 0)
	at, err := time.Parse(time.RFC3339Nano, record["time"].(string))
	require.NoError(t, err)
	require.Equal(t, time.UTC, at.Location())
}

func TestLoggerWritesTextForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	observe.NewLogger(&out, observe.Log{Level: slog.LevelDebug, Format: "text"}, "msgexchangeapi").Debug("lane started")
	require.Contains(t, out.String(), `level=DEBUG msg="lane started"`)
}

func TestRegistryTellsTheBuild(t *testing.T) {
	t.Parallel()
	families, err := observe.NewRegistry(observe.NewBuild("v1.2.3", "abc")).Gather()
	require.NoError(t, err)
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
		if family.GetName() == "msgx_build_info" {
			require.Contains(t, family.String(), "v1.2.3")
		}
	}
	require.Contains(t, names, "msgx_build_info")
	require.Contains(t, names, "go_goroutines")
	require.Contains(t, names, "process_start_time_seconds")
}

func TestBuildAlwaysSaysSomething(t *testing.T) {
	t.Parallel()
	b := observe.NewBuild("", "")
	require.NotEmpty(t, b.Version)
	require.NotEmpty(t, b.Revision)
	require.NotEmpty(t, b.Go)
}
