// Package message knows what every message has whatever it says: its META, its kind, its identity and its place in the
// order of arrival (design §5; dictionary 2, 4, 12). It reads no XML; that is jobs/sis.
package message

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Position is a message's place in the one order of everything that arrived: generation of ids first, then mailbox id
// (contract §8.10). The zero Position is before every message.
type Position struct {
	Generation int32
	ID         int64
}

// Compare orders positions: -1 when p came before q, 0 when they are the same message, 1 when after.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Generation, q.Generation), cmp.Compare(p.ID, q.ID))
}

// After says that p arrived later than q.
func (p Position) After(q Position) bool { return p.Compare(q) > 0 }

// IsZero says that p names no message.
func (p Position) IsZero() bool { return p == Position{} }

// String writes the bare id in the first generation of ids and "generation:id" later.
func (p Position) String() string {
	if p.Generation == 0 {
		return strconv.FormatInt(p.ID, 10)
	}
	return fmt.Sprintf("%d:%d", p.Generation, p.ID)
}

// MarshalJSON writes a number in the first generation and the text "generation:id" later (contract §8.3).
func (p Position) MarshalJSON() ([]byte, error) {
	if p.Generation == 0 {
		return strconv.AppendInt(nil, p.ID, 10), nil
	}
	return strconv.AppendQuote(nil, p.String()), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Position) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil { // nearly always, and it takes no memory
		*p = Position{ID: n}
		return nil
	}
	s := strings.Trim(string(b), `"`)
	gen, id, found := strings.Cut(s, ":")
	if !found {
		gen, id = "0", s
	}
	g, err := strconv.ParseInt(gen, 10, 32)
	if err != nil {
		return fmt.Errorf("position %q: generation: %w", s, err)
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return fmt.Errorf("position %q: id: %w", s, err)
	}
	*p = Position{Generation: int32(g), ID: n}
	return nil
}

// Meta is the envelope of a message, as the dictionary's section 2 says. Codes are upper case, all parts trimmed.
type Meta struct {
	SNDR string    `json:"sndr"`
	SEQN int64     `json:"seqn"` // compared as a number: 000777 = 777
	DTTM time.Time `json:"dttm"` // second resolution; a moment, shown in the airport's zone
	TYPE string    `json:"type"`
	STYP string    `json:"styp"`
}

// Kind is "TYPE-STYP", the name of a message kind everywhere: catalogue, logs, metrics, events.
type Kind string

// Kind of the message.
func (m Meta) Kind() Kind { return Kind(m.TYPE + "-" + m.STYP) }

// IdentityKey is SNDR|TYPE|STYP|SEQN (design §5), SNDR in upper case too.
func (m Meta) IdentityKey() string {
	return strings.ToUpper(m.SNDR) + "|" + m.TYPE + "|" + m.STYP + "|" + strconv.FormatInt(m.SEQN, 10)
}

// State is where a message stands (design §3).
type State string

// The closed set of states. PENDING and FAILED hold the head; the others are terminal.
const (
	Pending   State = "PENDING"
	Failed    State = "FAILED"
	Succeeded State = "SUCCEEDED"
	Skipped   State = "SKIPPED"
	Dead      State = "DEAD"
)

// AllStates lists the states in the order of a message's life.
func AllStates() []State { return []State{Pending, Failed, Succeeded, Skipped, Dead} }

// Terminal says that nothing more happens to a message in this state by itself.
func (s State) Terminal() bool { return s == Succeeded || s == Skipped || s == Dead }
