package sis

import "time"

// Type is what a value is (dictionary 3).
type Type uint8

// The closed set of value types. Empty is the third state beside absent and filled: the element was there and said nothing.
const (
	Empty   Type = iota
	Text         // text, trimmed, CR LF as LF
	Moment       // date-time; Num = Unix seconds
	Number       // integer, id or duration in minutes; Num
	Decimal      // exact decimal text, e.g. "1234.5", without leading zeros, trailing zeros or plus sign
)

// AllTypes lists the types.
func AllTypes() []Type { return []Type{Empty, Text, Moment, Number, Decimal} }

// String names the type as the catalogue's page does.
func (t Type) String() string {
	switch t {
	case Empty:
		return "empty"
	case Text:
		return "text"
	case Moment:
		return "moment"
	case Number:
		return "number"
	case Decimal:
		return "decimal"
	}
	return "no such type"
}

// Value is one value of a message or of a flight. It is comparable: equal values are ==. The zero Value is Empty.
type Value struct {
	Type Type
	Num  int64
	Str  string
}

// TextValue is s as a value; Empty for "".
func TextValue(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{Type: Text, Str: s}
}

// NumberValue is n as a value.
func NumberValue(n int64) Value { return Value{Type: Number, Num: n} }

// MomentValue is t as a value, cut to seconds.
func MomentValue(t time.Time) Value { return Value{Type: Moment, Num: t.Unix()} }

// IsEmpty says that the element was present and empty, or that the field has been cleared.
func (v Value) IsEmpty() bool { return v.Type == Empty }

// Time is a Moment's time in UTC; the zero time for every other type.
func (v Value) Time() time.Time {
	if v.Type != Moment {
		return time.Time{}
	}
	return time.Unix(v.Num, 0).UTC()
}
