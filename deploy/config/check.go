package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"msgexchange/jobs/schedule"
)

// A check names the key below its section, so that the loader can put the section in front. It is nil when all is well.

// within checks that v lies in lo … hi, both included.
func within[T cmp.Ordered](name string, v, lo, hi T) error {
	if v < lo || v > hi {
		return fmt.Errorf("%s: %s is not in %s … %s", name, shown(v), shown(lo), shown(hi))
	}
	return nil
}

// shown is a value as it is written in a configuration.
func shown(v any) string { return format(reflect.ValueOf(v)) }

// oneOf checks that v is one of a closed set.
func oneOf[T ~string](name string, v T, all ...T) error {
	if slices.Contains(all, v) {
		return nil
	}
	words := make([]string, len(all))
	for i, word := range all {
		words[i] = string(word)
	}
	return fmt.Errorf("%s: %q is none of %s", name, v, strings.Join(words, ", "))
}

// filled checks that v says something.
func filled(name, v string) error {
	if strings.TrimSpace(v) == "" {
		return fmt.Errorf("%s: required", name)
	}
	return nil
}

// zone checks that v is a time zone of the tz database.
func zone(name, v string) error {
	if _, err := time.LoadLocation(v); v == "" || err != nil {
		return fmt.Errorf("%s: %q is no time zone of the tz database", name, v)
	}
	return nil
}

// cron checks that v is a cron line of five fields that comes some day.
func cron(name, v string) error {
	if _, err := schedule.Parse(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
