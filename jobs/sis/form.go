package sis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Form is how a value is written on the wire (dictionary 3).
type Form string

// The closed set of forms.
const (
	FormText     Form = "text"      // any text
	FormCode     Form = "code"      // short text, case kept
	FormID       Form = "id"        // decimal digits
	FormInteger  Form = "integer"   // digits, a sign allowed
	FormQuantity Form = "0..127"    // an integer of that range
	FormNumber   Form = "1..127"    // the number of an entry
	FormDecimal  Form = "decimal"   // digits, a sign and a fraction allowed
	FormDateTime Form = "date-time" // ddMMMyyHHmm, airport local time
	FormDuration Form = "HHmm"      // hours and minutes; the value is minutes
	FormFlag     Form = "Y or N"    // the value is the text Y or N; whatever is not Y or y is N
)

// AllForms lists the forms.
func AllForms() []Form {
	return []Form{FormText, FormCode, FormID, FormInteger, FormQuantity, FormNumber, FormDecimal, FormDateTime, FormDuration, FormFlag}
}

// Type is what a value of this form is once read.
func (f Form) Type() Type {
	switch f {
	case FormText, FormCode, FormFlag:
		return Text
	case FormID, FormInteger, FormQuantity, FormNumber, FormDuration:
		return Number
	case FormDecimal:
		return Decimal
	case FormDateTime:
		return Moment
	}
	return Empty
}

const (
	maxEntryNumber   = 127 // largest entry number and quantity (dictionary 6)
	maxDecimalDigits = 30  // more is no weight; keeps what reaches the database finite
	minutesPerHour   = 60
	yearsFrom        = 2000 // yy is 20yy
)

// read turns trimmed wire text into a value; "" is Empty.
func (f Form) read(s string, zone *time.Location) (Value, error) {
	if s == "" {
		return Value{}, nil
	}
	switch f {
	case FormText, FormCode:
		return TextValue(s), nil
	case FormID:
		return readInteger(s, false)
	case FormInteger:
		return readInteger(s, true)
	case FormQuantity:
		return readRange(s, 0, maxEntryNumber)
	case FormNumber:
		return readRange(s, 1, maxEntryNumber)
	case FormDecimal:
		return readDecimal(s)
	case FormDateTime:
		return readDateTime(s, zone)
	case FormDuration:
		return readDuration(s)
	case FormFlag:
		return readFlag(s), nil
	}
	return Value{}, fmt.Errorf("no such form %q", string(f))
}

// write appends v as the wire has it, without escapes; nothing for Empty. It is the inverse of read.
func (f Form) write(dst []byte, v Value, zone *time.Location) []byte {
	switch v.Type {
	case Empty:
		return dst
	case Text, Decimal:
		return append(dst, v.Str...)
	case Moment:
		return append(dst, strings.ToUpper(time.Unix(v.Num, 0).In(zone).Format("02Jan061504"))...)
	case Number:
		if f != FormDuration {
			return strconv.AppendInt(dst, v.Num, 10)
		}
		hours := min(v.Num/minutesPerHour, 99)
		return fmt.Appendf(dst, "%02d%02d", hours, v.Num-hours*minutesPerHour)
	}
	return dst
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func readInteger(s string, signed bool) (Value, error) {
	body := s
	if signed && (s[0] == '+' || s[0] == '-') {
		body = s[1:]
	}
	if !digits(body) {
		return Value{}, fmt.Errorf("%s is not a number", quoted(s))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return Value{}, fmt.Errorf("%s is too large a number", quoted(s))
	}
	return NumberValue(n), nil
}

func readRange(s string, low, high int64) (Value, error) {
	v, err := readInteger(s, true)
	if err != nil {
		return Value{}, err
	}
	if v.Num < low || v.Num > high {
		return Value{}, fmt.Errorf("%d is not within %d and %d", v.Num, low, high)
	}
	return v, nil
}

func readDecimal(s string) (Value, error) {
	sign, body := "", s
	if s[0] == '+' || s[0] == '-' {
		sign, body = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	whole, fraction, point := strings.Cut(body, ".")
	if !digits(whole) || point && !digits(fraction) || len(body) > maxDecimalDigits {
		return Value{}, fmt.Errorf("%s is not a number", quoted(s))
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if whole == "0" {
		sign = ""
	}
	return Value{Type: Decimal, Str: sign + whole}, nil
}

// readDateTime reads ddMMMyyHHmm strictly: the known consumer rolls the 31st of April over to May, we refuse it.
func readDateTime(s string, zone *time.Location) (Value, error) {
	if len(s) != len("15DEC031330") || !digits(s[:2]) || !digits(s[5:]) {
		return Value{}, fmt.Errorf("%s is not a date-time like 15DEC031330", quoted(s))
	}
	month := monthOf(s[2:5])
	if month == 0 {
		return Value{}, fmt.Errorf("%s has no such month", quoted(s))
	}
	t, err := moment(yearsFrom+pair(s[5:]), month, pair(s[0:]), pair(s[7:]), pair(s[9:]), 0, zone)
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", quoted(s), err)
	}
	return MomentValue(t), nil
}

// readEnvelopeTime reads DTTM, yyyyMMddHHmmss.
func readEnvelopeTime(s string, zone *time.Location) (time.Time, error) {
	if len(s) != len("20260318084010") || !digits(s) {
		return time.Time{}, fmt.Errorf("%s is not a time like 20260318084010", quoted(s))
	}
	t, err := moment(pair(s)*100+pair(s[2:]), time.Month(pair(s[4:])), pair(s[6:]), pair(s[8:]), pair(s[10:]), pair(s[12:]), zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", quoted(s), err)
	}
	return t, nil
}

func readDuration(s string) (Value, error) {
	if len(s) != len("HHmm") || !digits(s) {
		return Value{}, fmt.Errorf("%s is not a duration of four digits", quoted(s))
	}
	return NumberValue(int64(pair(s)*minutesPerHour + pair(s[2:]))), nil
}

func readFlag(s string) Value {
	if strings.EqualFold(s, "Y") {
		return TextValue("Y")
	}
	return TextValue("N")
}

func pair(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

func monthOf(s string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(s, m.String()[:3]) {
			return m
		}
	}
	return 0
}

// moment is time.Date without its rolling over: a part that does not exist is an error.
func moment(year int, month time.Month, day, hour, minute, second int, zone *time.Location) (time.Time, error) {
	const lastHour, lastMinute = 23, 59
	switch {
	case year < 1 || month < time.January || month > time.December:
		return time.Time{}, errors.New("no such month")
	case day < 1 || day > time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day():
		return time.Time{}, errors.New("no such day")
	case hour > lastHour || minute > lastMinute || second > lastMinute:
		return time.Time{}, errors.New("no such time of day")
	}
	return time.Date(year, month, day, hour, minute, second, 0, zone), nil
}

// maxQuotedBytes keeps wire text in errors short: it may be megabytes, and it may be personal.
const maxQuotedBytes = 40

func quoted(s string) string { return strconv.Quote(shortened(s, maxQuotedBytes)) }

func shortened(s string, maxBytes int) string {
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "") + "…"
	}
	return s
}
