package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is read from and written as "10MiB", "512KiB" or plain "1000".
type Size int64

// Units of Size.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
)

type unit struct {
	name  string
	bytes Size
}

func units() []unit { return []unit{{"MiB", MiB}, {"KiB", KiB}} }

// UnmarshalText reads a size; the unit is KiB or MiB, in any case, or missing.
func (s *Size) UnmarshalText(text []byte) error {
	number, scale := strings.TrimSpace(string(text)), Size(1)
	for _, u := range units() {
		if len(number) > len(u.name) && strings.EqualFold(number[len(number)-len(u.name):], u.name) {
			number, scale = strings.TrimSpace(number[:len(number)-len(u.name)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(scale) {
		return fmt.Errorf("%q is not a number of bytes such as 64KiB or 10MiB", text)
	}
	*s = Size(n) * scale
	return nil
}

// MarshalText writes the size in the largest unit that divides it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is MarshalText for people.
func (s Size) String() string {
	for _, u := range units() {
		if s >= u.bytes && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
