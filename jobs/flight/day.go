package flight

import "time"

// DayOf is the operation day a moment belongs to: the day in zone that began at cutoffHour, so that with a cut-off of 4
// a flight at 03:59 belongs to the day before (K25).
func DayOf(t time.Time, zone *time.Location, cutoffHour int) Day {
	local := t.In(zone)
	day := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	if local.Hour() < cutoffHour {
		day = day.AddDate(0, 0, -1)
	}
	return Day(day.Format(time.DateOnly))
}
