package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/schedule"
)

func zone(t require.TestingT, name string) *time.Location {
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func TestNext(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02 15:04 -0700"
	for _, c := range []struct{ name, line, zone, at, want string }{
		{"daily", "0 3 * * *", "Asia/Shanghai", "2026-11-30 02:59 +0800", "2026-11-30 03:00 +0800"},
		{"strictly after", "0 3 * * *", "Asia/Shanghai", "2026-11-30 03:00 +0800", "2026-12-01 03:00 +0800"},
		{"by the airport's clock", "30 3 * * *", "Asia/Shanghai", "2026-11-30 19:29 +0000", "2026-12-01 03:30 +0800"},
		{"every quarter", "*/15 * * * *", "UTC", "2026-11-30 10:16 +0000", "2026-11-30 10:30 +0000"},
		{"list and range", "0 6-8,20 * * *", "UTC", "2026-11-30 08:00 +0000", "2026-11-30 20:00 +0000"},
		{"weekday by name", "0 4 * * mon", "UTC", "2026-11-30 05:00 +0000", "2026-12-07 04:00 +0000"},
		{"seven is Sunday", "0 4 * * 7", "UTC", "2026-11-30 05:00 +0000", "2026-12-06 04:00 +0000"},
		{"month by name", "0 0 1 feb *", "UTC", "2026-11-30 05:00 +0000", "2027-02-01 00:00 +0000"},
		{"day or weekday", "0 0 13 * fri", "UTC", "2026-11-30 00:00 +0000", "2026-12-04 00:00 +0000"},
		{"leap day", "0 0 29 2 *", "UTC", "2026-11-30 00:00 +0000", "2028-02-29 00:00 +0000"},
		{"a time the clock skips", "30 2 * * *", "Europe/Berlin", "2026-03-29 01:00 +0100", "2026-03-29 03:30 +0200"},
		{"and the next day as usual", "30 2 * * *", "Europe/Berlin", "2026-03-29 03:30 +0200", "2026-03-30 02:30 +0200"},
		{"a time that comes twice", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:00 +0200", "2026-10-25 02:30 +0200"},
		{"is taken once", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"},
		{"midnight skipped", "0 0 * * *", "Africa/Cairo", "2026-04-23 12:00 +0200", "2026-04-24 01:00 +0300"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cron, err := schedule.Parse(c.line)
			require.NoError(t, err)
			at, err := time.Parse(layout, c.at)
			require.NoError(t, err)
			require.Equal(t, c.want, cron.Next(at, zone(t, c.zone)).Format(layout))
		})
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":              "five fields",
		"@daily":        "five fields",
		"0 3 * *":       "five fields",
		"60 3 * * *":    "minute",
		"0 24 * * *":    "hour",
		"0 3 0 * *":     "day of month",
		"0 3 * 13 *":    "month",
		"0 3 * * 8":     "day of week",
		"0 5-3 * * *":   "backwards",
		"*/0 3 * * *":   "no step",
		"*/x 3 * * *":   "no step",
		"-1 3 * * *":    "minute",
		"0 3 30 feb *":  "never comes",
		"0 3 1,,2 * *":  "day of month",
		"x y * * *":     "hour", // every field is reported, not only the first
		"0 3 * * * * *": "five fields",
	} {
		_, err := schedule.Parse(line)
		require.ErrorContains(t, err, want, line)
	}
}

// A daily line is due exactly once on each day of any year in any zone, whatever the clocks do.
func TestNext_onceADay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := zone(t, rapid.SampledFrom([]string{"Asia/Shanghai", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana"}).Draw(t, "zone"))
		line := fmt.Sprintf("%d %d * * *", rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour"))
		cron, err := schedule.Parse(line)
		require.NoError(t, err)
		day := time.Date(rapid.IntRange(2000, 2040).Draw(t, "year"), 1, 1, 0, 0, 0, 0, time.UTC)
		at := time.Date(day.Year(), 1, 1, 0, 0, 0, 0, z).Add(-time.Minute)
		for range 366 {
			due := cron.Next(at, z)
			require.True(t, due.After(at))
			require.Equal(t, day.Format(time.DateOnly), due.Format(time.DateOnly), "%s in %s", line, z)
			at, day = due, day.AddDate(0, 0, 1)
		}
	})
}

func ExampleParse() {
	cron, _ := schedule.Parse("30 2 * * *")
	berlin, _ := time.LoadLocation("Europe/Berlin")
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)
	for range 3 { // the clock jumps from 2 to 3 on the 29th
		at = cron.Next(at, berlin)
		fmt.Println(at.Format("02 15:04"))
	}
	// Output:
	// 29 03:30
	// 30 02:30
	// 31 02:30
}
