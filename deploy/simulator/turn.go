package simulator

import (
	"math/rand/v2"
	"time"
)

// any is one of the turn's flights, the arrival if it has one.
func (t *turn) any() *flight {
	if t.arrival != nil {
		return t.arrival
	}
	return t.departure
}

// begin and end are the first and last scheduled times of the turn here.
func (t *turn) begin() time.Time { return t.any().sodt }

func (t *turn) end() time.Time {
	if t.departure != nil {
		return t.departure.sodt
	}
	return t.arrival.sodt
}

// wake is when the first message about the turn may be due.
func (t *turn) wake() time.Time {
	if t.arrival != nil {
		return t.arrival.sodt.Add(-t.arrival.leg() - 75*time.Minute)
	}
	return t.departure.sodt.Add(-200 * time.Minute)
}

// life tells one turn: everything that will be heard of it goes onto the queue at once, each message when its time comes.
// What a message says is worked out only when it goes out, so that it fits what happened in between.
type life struct {
	*day
	*turn
	rnd random // its own, so that no other turn's life changes this one
}

// live tells the life of a turn.
func (d *day) live(t *turn) {
	l := life{day: d, turn: t, rnd: random{rand.New(rand.NewPCG(d.Seed, uint64(t.any().id)))}}
	var onBlock time.Time
	if t.arrival != nil {
		onBlock = l.arrive(t.arrival)
	}
	if t.departure != nil {
		l.depart(t.departure, onBlock)
	}
}

// tell queues a message about f at t, some seconds give or take.
func (l *life) tell(f *flight, t time.Time, styp string, payload func() []element) {
	l.after(t.Add(time.Duration(l.rnd.below(50))*time.Second), func() *draft {
		if !f.heard(t) {
			return nil
		}
		return f.flop(styp, payload()...)
	})
}

// say is tell for what is known already.
func (l *life) say(f *flight, t time.Time, styp string, payload ...element) {
	l.tell(f, t, styp, func() []element { return payload })
}

// set is say for a sub type with one time, which it is named after.
func (l *life) set(f *flight, t time.Time, styp string, value time.Time) {
	l.say(f, t, styp, when(styp, value))
}

// status says what f does now, and so do its children.
func (l *life) status(f *flight, t time.Time, code string) {
	l.say(f, t, "FTSS", el("FTSS", code))
	for _, c := range f.shares {
		l.say(c, t, "FTSS", el("FTSS", code))
	}
}

// list queues one of f's lists, after change has brought it up to date.
func (l *life) list(f *flight, t time.Time, list slotList, change func()) {
	l.tell(f, t, list.name, func() []element {
		change()
		return slots(list, f)
	})
}

// mark sets one time in some slots: the first few, or all.
func mark(of []slot, n int, field func(*slot) *time.Time, t time.Time) {
	for i := range min(n, len(of)) {
		*field(&of[i]) = t
	}
}

func began(s *slot) *time.Time { return &s.began }
func ended(s *slot) *time.Time { return &s.ended }

// all is more slots than any list has.
const all = 127

// lateness draws how much later than planned something is: mostly little, sometimes hours.
func (r random) lateness() time.Duration {
	switch n := r.between(1, 100); {
	case n <= 62:
		return r.minutes(-12, 9)
	case n <= 90:
		return r.minutes(10, 45)
	default:
		return r.minutes(45, 150)
	}
}

// noteworthy is the delay from which the sender gives a reason.
const noteworthy = 20 * time.Minute
