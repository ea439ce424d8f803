package param

import (
	"strings"
	"time"

	"msgexchange/http/problem"
	"msgexchange/jobs/request"
)

// Window reads what a schedule request asks for: two moments as people write them in zone, "2026-11-30 00:00" on the 24-hour
// clock, or RFC 3339. BAD_REQUEST when they are none, or no window that may be asked for.
func Window(start, end string, zone *time.Location) (w request.Window, err error) {
	if w.From, err = moment("startTime", start, zone); err != nil {
		return w, err
	}
	if w.To, err = moment("endTime", end, zone); err != nil {
		return w, err
	}
	if err := w.Validate(); err != nil {
		return w, problem.New(problem.BadRequest, err.Error())
	}
	return w, nil
}

// moment is the zero time when there is none. Seconds are left out: a request has no room for them.
func moment(name, s string, zone *time.Location) (time.Time, error) {
	if s = strings.TrimSpace(s); s == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", s, zone)
	if err != nil {
		at, err = time.Parse(time.RFC3339, s)
		at = at.In(zone).Truncate(time.Minute)
	}
	if err != nil {
		return at, problem.New(problem.BadRequest, name+" must be like 2026-11-30 00:00, on the 24-hour clock")
	}
	return at, nil
}
