package simulator

import (
	"fmt"
	"strings"
	"time"
)

// delayed says that f is late, and why.
func (l *life) delayed(f *flight, t time.Time, late time.Duration, cause delayCause) {
	l.say(f, t, "DELY", l.reason(f, f.sodt, late, cause))
	l.status(f, t.Add(time.Minute), "DLY")
}

// reason is one entry of DELY; the sub type merges by code, so that a second reason joins the first.
func (l *life) reason(f *flight, from time.Time, late time.Duration, cause delayCause) element {
	text := cause.text
	if strings.Contains(text, "%s") {
		text = fmt.Sprintf(text, f.route[0].name)
	}
	m := int(late.Minutes())
	const hour = 60
	return element{name: "DELY", text: text, attrs: []string{
		"CODE", cause.code, "STRT", wireTime(from), "DURA", fmt.Sprintf("%02d%02d", m/hour, m%hour),
	}}
}

// cancel cancels a departure; every third time it is withdrawn and the flight goes later. It gives the new off-block time.
func (l *life) cancel(f *flight, off time.Time) time.Time {
	t := off.Add(-l.rnd.minutes(25, 130))
	l.set(f, t, "CNCL", t)
	l.status(f, t.Add(time.Minute), "CNL")
	if !l.rnd.chance(35) {
		f.until = t.Add(2 * time.Minute)
		return off
	}
	back := t.Add(l.rnd.minutes(6, 20))
	off = back.Add(l.rnd.minutes(140, 200))
	l.say(f, back, "CNCL", el("CNCL", ""))
	l.status(f, back.Add(time.Minute), "SCH")
	l.say(f, back.Add(2*time.Minute), "DELY", el("DELY", "")) // the old reasons are void
	l.set(f, back.Add(3*time.Minute), "EOBT", off)
	l.set(f, back.Add(4*time.Minute), "ESTT", off)
	return off
}

// cancelTurn cancels an arrival before it left, and with it the departure; nothing more is heard of either.
func (l *life) cancelTurn(f *flight, t time.Time) (onBlock time.Time) {
	for _, c := range []*flight{f, l.departure} {
		if c == nil {
			continue
		}
		l.set(c, t, "CNCL", t)
		l.status(c, t.Add(time.Minute), "CNL")
		l.say(c, t.Add(2*time.Minute), "REMC", el("REMC", "公司计划调整，航班取消"))
		c.until = t.Add(2 * time.Minute)
		t = t.Add(4 * time.Minute)
	}
	return time.Time{}
}

// divert sends an arrival elsewhere; it comes back hours later. It gives the time of landing.
func (l *life) divert(f *flight, landing time.Time) time.Time {
	t := landing.Add(-15 * time.Minute)
	l.say(f, t, "FDIV", element{name: "FDIV", text: "本场雷雨", attrs: []string{"DDES", "CKG", "DDIR", "TO"}})
	l.status(f, t.Add(time.Minute), "DLY")
	landing = landing.Add(l.rnd.minutes(120, 210))
	l.say(f, landing.Add(-50*time.Minute), "FDIV", element{name: "FDIV", attrs: []string{"DDES", "", "DDIR", ""}})
	l.set(f, landing.Add(-49*time.Minute), "ESTT", landing)
	return landing
}

// goAround makes an arrival try again. It gives the time of landing.
func (l *life) goAround(f *flight, landing time.Time) time.Time {
	l.say(f, landing.Add(-2*time.Minute), "FLAB", element{name: "FLAB", text: "跑道有异物", attrs: []string{"ARES", "G"}})
	landing = landing.Add(l.rnd.minutes(12, 20))
	l.set(f, landing.Add(-9*time.Minute), "ESTT", landing)
	return landing
}

// turnBack brings a departure back shortly after take-off.
func (l *life) turnBack(f *flight, up time.Time) {
	t := up.Add(l.rnd.minutes(8, 25))
	l.say(f, t, "FRET", element{name: "FRET", text: "客舱增压告警", attrs: []string{"REID", "A"}})
	l.status(f, t.Add(time.Minute), "RTN")
}

// loadMessage is an LDM, which the site ignores (dictionary 12).
func (f *flight) loadMessage(off time.Time) *draft {
	if !f.heard(off) {
		return nil
	}
	text := fmt.Sprintf("LDM %s/%s %s C8Y%d 2/4 -%s %d/2/1 T1240", f.number, f.sodt.Format("02"), f.reno, f.craft.seats, f.route[0].code, f.craft.seats*4/5)
	return &draft{typ: "LDM", styp: "NONE", body: []element{group("LDM", num("FLID", f.id), el("TEXT", text))}}
}
