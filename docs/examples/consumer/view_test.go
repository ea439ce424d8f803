package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func of(key, value string, version, event int) record {
	r := record{Key: key, Headers: map[string]string{
		"schema-version": "1", "state-version": fmt.Sprint(version), "event-id": fmt.Sprint(event),
	}}
	if value != "" {
		r.Value = []byte(value)
	}
	return r
}

func TestState(t *testing.T) {
	t.Parallel()
	v := newView()
	for _, step := range []struct {
		in   record
		news bool
		want string
	}{
		{of("15", "a", 1, 1), true, "a"},
		{of("15", "a", 1, 1), false, "a"}, // again
		{of("15", "c", 3, 5), true, "c"},
		{of("15", "b", 2, 3), false, "c"}, // older: never taken
		{of("15", "", 4, 7), true, ""},
		{of("15", "c", 3, 5), false, ""}, // a dead flight does not rise
		{of("15", "d", 5, 9), true, "d"},
	} {
		news, err := v.State(step.in)
		require.NoError(t, err)
		require.Equal(t, step.news, news)
		require.Equal(t, step.want, string(v.flights["15"]))
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	v := newView()
	for _, step := range []struct {
		event int
		first bool
	}{{1, true}, {2, true}, {1, false}, {2, false}, {7, true}, {4, true}} { // 4 was dead and sent again later
		first, err := v.Change(of("15", "{}", 1, step.event))
		require.NoError(t, err)
		require.Equal(t, step.first, first)
	}
	for i := range 2 * remembered {
		_, err := v.Change(of("15", "{}", 1, 100+i))
		require.NoError(t, err)
	}
	require.Len(t, v.seen, remembered)
	stranger := of("15", "{}", 1, 1)
	stranger.Headers["schema-version"] = "2"
	_, err := v.Change(stranger)
	require.ErrorContains(t, err, "this reader knows 1")
}
