package cli

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/deploy/config"
)

// Every task the contract names can be ordered, live and as a shadow (contract §8.12), and those of the night have their hour.
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, mode := range config.AllModes() {
		n := &node{config: config.Defaults(), zone: time.UTC, log: slog.New(slog.DiscardHandler)}
		n.config.Mode = mode
		lists, err := n.refdataTasks()
		require.NoError(t, err)
		when, atStart := map[string]string{}, []string{}
		for _, task := range append(n.upkeep(), lists...) {
			require.NotNil(t, task.Do, task.Name)
			require.NotContains(t, when, task.Name)
			when[task.Name] = task.When
			if task.AtStart {
				atStart = append(atStart, task.Name)
			}
		}
		require.Equal(t, map[string]string{
			"archive": "0 3 * * *", "history-sweep": "30 3 * * *", "snap-log": "45 3 * * *", "retention": "0 4 * * *",
			"consistency": "", "consistency-sample": "15 4 * * *", "refdata": "",
		}, when)
		require.Equal(t, []string{"consistency"}, atStart)
	}
	n := &node{config: config.Defaults(), zone: time.UTC, log: slog.New(slog.DiscardHandler)}
	n.config.Consistency = config.Consistency{}
	for _, task := range n.upkeep() {
		require.False(t, task.AtStart, task.Name)
		require.False(t, task.Name == "consistency-sample" && task.When != "", "switched off")
	}
}
