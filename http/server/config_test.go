package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/http/server"
)

func TestConfig_defaultsAreValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, server.Defaults().Validate())
}

func TestConfig_everyProblemAtOnce(t *testing.T) {
	t.Parallel()
	c := server.Defaults()
	c.Addr, c.MaxBody, c.RateLimit, c.RateBurst, c.ReadTimeout = "8080", 1, -1, 0, time.Hour
	err := c.Validate()
	for _, key := range []string{"addr", "max-body", "rate-limit", "rate-burst", "read-timeout"} {
		require.ErrorContains(t, err, key+": ")
	}
	require.Len(t, strings.Split(err.Error(), "\n"), 5)
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]server.Size{
		"10MiB": 10 * server.MiB, "512kib": 512 * server.KiB, "1 MiB": server.MiB, "1000": 1000, "0": 0,
	} {
		var s server.Size
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, s, text)
		back, err := s.MarshalText()
		require.NoError(t, err)
		var again server.Size
		require.NoError(t, again.UnmarshalText(back))
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "MiB", "10MB", "9GiB", "-1", "1.5MiB", "9223372036854775807MiB"} {
		var s server.Size
		require.Error(t, s.UnmarshalText([]byte(text)), text)
	}
	require.Equal(t, "10MiB", (10 * server.MiB).String())
	require.Equal(t, "1000", server.Size(1000).String())
}
