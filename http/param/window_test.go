package param_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/http/param"
	"msgexchange/http/problem"
)

// What is read is what a request can say: minutes, in the years of which two digits are enough.
func TestWindow(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("CST", 8*60*60)
	w, err := param.Window(" 2026-11-30 00:00", "2026-11-29T17:00:59.9Z", zone)
	require.NoError(t, err)
	require.Equal(t, "2026-11-30 00:00:00 +0800 CST 2026-11-30 01:00:00 +0800 CST", w.From.String()+" "+w.To.String())
	for name, c := range map[string][2]string{
		"the same minute":      {"2026-11-30T00:00:10Z", "2026-11-30T00:00:50Z"},
		"another century":      {"1926-11-30 00:00", "1926-11-30 01:00"},
		"the next century":     {"2099-12-31 00:00", "2100-01-01 00:00"},
		"by the airport's day": {"1999-12-31T15:59:00Z", "2000-01-01 10:00"},
		"no such day":          {"2026-02-30 00:00", "2026-03-01 00:00"},
		"no end":               {"2026-11-30 00:00", ""},
		"no time":              {"now", "2026-11-30 00:00"},
	} {
		_, err := param.Window(c[0], c[1], zone)
		require.Equal(t, problem.BadRequest, problem.Of(err).Code, name)
	}
	_, err = param.Window("1999-12-31T16:00:00Z", "2000-01-01 10:00", zone)
	require.NoError(t, err, "2000 has begun there")
}
