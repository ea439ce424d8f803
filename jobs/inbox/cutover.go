package inbox

import (
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

// Gaps gives the ids missing between rows, which are ascending, as holes first seen at now. At a cut-over they are
// remembered: who had been given one of them may still be about to commit.
func Gaps(rows []Row, step int64, now time.Time) []Hole {
	if len(rows) == 0 {
		return nil
	}
	holes, _ := missing(Cursor{W: rows[0].ID, Step: step}, rows[1:], now)
	return holes
}
