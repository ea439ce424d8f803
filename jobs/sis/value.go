package sis

// Type is what a value is (dictionary 3).
type Type uint8

// The closed set of value types. Empty is the third state beside absent and filled: the element was there and said nothing.
const (
	Empty   Type = iota
	Text         // text, trimmed, CR LF as LF
	Moment       // date-time; Num = Unix seconds
	Number       // integer, id or duration in minutes; Num
	Decimal      // exact decimal text, e.g. "1234.5", without leading zeros or plus sign
)

// Value is one value of a message or of a flight. It is comparable: equal values are ==. The zero Value is Empty.
type Value struct {
	Type Type
	Num  int64
	Str  string
}

// IsEmpty says that the element was present and empty, or that the field has been cleared.
func (v Value) IsEmpty() bool { return v.Type == Empty }
