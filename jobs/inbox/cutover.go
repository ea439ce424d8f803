package inbox

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Cutover says where a new lane begins; the empty text says: nowhere in particular, W = 0 (design §4, contract §8.6).
type Cutover string

// The named places; any other is the decimal id of the last message not to be taken.
const (
	CutoverMin  Cutover = "min"  // just below the lowest id in the mailbox: take all there is
	CutoverZero Cutover = "zero" // 0: what is missing below the lowest id ages as a hole
	CutoverMax  Cutover = "max"  // the highest id in the mailbox: take only what comes from now on
)

// Extent is the smallest and the largest id in the mailbox; both 0 when it is empty.
type Extent struct{ Min, Max int64 }

// Watermark gives the W to begin with. An error says that c is none of the allowed values.
func (c Cutover) Watermark(e Extent) (int64, error) {
	switch c {
	case "", CutoverZero:
		return 0, nil
	case CutoverMin:
		return max(e.Min-1, 0), nil
	case CutoverMax:
		return e.Max, nil
	}
	id, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("cut-over watermark %q: want min, zero, max or an id", string(c))
	}
	return id, nil
}

// Start is where a lane begins: at its cut-over, or anew with the next generation of ids.
type Start struct {
	From Cutover
	W    int64
	// ReceivedAt is the latest moment at which a row at or just below W was received; zero while unknown.
	ReceivedAt time.Time
	// Missing are ids just below W that are missing. They are remembered: who had been given one of them may still be about
	// to commit, and is late then.
	Missing []Hole
}

// ErrAhead refuses a start above all ids there are.
var ErrAhead = errors.New("no id in the mailbox is as high: all that comes up to it would be skipped")

// StartTail is how many steps of ids below its watermark a start looks at.
const StartTail = 1000

// TailOf is the ids that a start at w has to look at.
func TailOf(w, step int64) Range { return Range{max(w-StartTail*step+1, 1), w} }

// StartAt makes the start at w; tail is what the mailbox has of TailOf, ascending.
func StartAt(from Cutover, w int64, tail []Row, step int64, now time.Time) Start {
	s := Start{From: from, W: w}
	for _, r := range tail {
		if r.ReceivedAt.After(s.ReceivedAt) {
			s.ReceivedAt = r.ReceivedAt
		}
	}
	if len(tail) > 0 {
		s.Missing, _ = missing(Cursor{W: tail[0].ID, Step: step}, tail[1:], now)
	}
	return s
}
