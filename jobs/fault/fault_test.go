package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
)

// Each class is exactly one of: ends the message, retried, an event's, or an outage that is nobody's (design §3).
func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range append(fault.AllClasses(), fault.Refused, fault.Outage) {
		n := 0
		for _, is := range []bool{c.Terminal(), c.Retryable(), c == fault.Refused, c == fault.Outage} {
			if is {
				n++
			}
		}
		require.Equal(t, 1, n, c)
	}
	require.False(t, fault.Malformed.Replayable())
	require.False(t, fault.Protocol.Replayable())
	for _, c := range []fault.Class{fault.CodecError, fault.Unsupported, fault.Infra, fault.Exhausted} {
		require.True(t, c.Replayable(), c)
	}
}

func TestOfKeepsTheFirstDecision(t *testing.T) {
	t.Parallel()
	err := fault.At(fault.Protocol, "decode", "SCHD/FLTR[3]/SODT", 12, "no such day")
	wrapped := fault.Wrap(fault.Infra, "process", fmt.Errorf("again: %w", err))
	require.Equal(t, fault.Protocol, fault.Of(wrapped))
	require.ErrorIs(t, wrapped, err)
	require.Equal(t, fault.Infra, fault.Of(errors.New("?")))
	require.Empty(t, fault.Of(nil))
	require.NoError(t, fault.Wrap(fault.Infra, "x", nil))
	require.Equal(t, "PROTOCOL: decode: SCHD/FLTR[3]/SODT (line 12): no such day", err.Error())
}

// K09: what PostgreSQL refuses in text never reaches it through an error.
func TestTextIsStorable(t *testing.T) {
	t.Parallel()
	s := fault.Text(errors.New("a\x00b\xff" + strings.Repeat("停", 2000)))
	require.True(t, utf8.ValidString(s))
	require.NotContains(t, s, "\x00")
	require.LessOrEqual(t, len(s), 2000)
}
