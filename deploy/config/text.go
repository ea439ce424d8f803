package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Every value has one text form, the same in the environment, in a file and when printed: what is printed can be loaded.

// day is the longest unit a duration is written in.
const day = 24 * time.Hour

// parse sets v from its text form.
func parse(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Interface().(type) {
	case time.Duration:
		d, err := parseDuration(text)
		v.SetInt(int64(d))
		return err
	case *time.Location:
		zone, err := time.LoadLocation(text)
		v.Set(reflect.ValueOf(zone))
		return err
	}
	switch v.Kind() {
	case reflect.Slice:
		return parseList(v, text)
	case reflect.Map:
		return parseMap(v, text)
	case reflect.String:
		v.SetString(text)
		return nil
	default:
		return parseScalar(v, text)
	}
}

func parseScalar(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return asked(err, text, "true or false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return asked(err, text, "a whole number")
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		return asked(err, text, "a number")
	default:
		return fmt.Errorf("a setting cannot be a %s", v.Type())
	}
}

// asked says what was wanted instead of what a parser stumbled over.
func asked(err error, text, want string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is not %s", text, want)
}

// parseDuration reads what time.ParseDuration reads, and whole days: 400d.
func parseDuration(text string) (time.Duration, error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if n, err := strconv.ParseInt(days, 10, 16); err == nil {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(text)
	return d, asked(err, text, "a duration such as 20ms, 1m30s or 7d")
}

// parseList reads elements with commas between them; no text is no element.
func parseList(v reflect.Value, text string) error {
	list := reflect.MakeSlice(v.Type(), 0, 0)
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		errs = append(errs, parse(element, part))
		list = reflect.Append(list, element)
	}
	v.Set(list)
	return errors.Join(errs...)
}

// parseMap reads k=v with commas between; a part without "=" goes on with the value before it, as in k=0,30 3 * * *.
func parseMap(v reflect.Value, text string) error {
	var pairs []string
	for part := range strings.SplitSeq(text, ",") {
		switch {
		case strings.Contains(part, "="):
			pairs = append(pairs, part)
		case len(pairs) > 0:
			pairs[len(pairs)-1] += "," + part
		case strings.TrimSpace(part) != "":
			return fmt.Errorf("%q is not written name=value", part)
		}
	}
	entries := reflect.MakeMap(v.Type())
	var errs []error
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		element := reflect.New(v.Type().Elem()).Elem()
		errs = append(errs, parse(element, strings.TrimSpace(value)))
		entries.SetMapIndex(reflect.ValueOf(strings.TrimSpace(name)).Convert(v.Type().Key()), element)
	}
	v.Set(entries)
	return errors.Join(errs...)
}

// textOf is what a file holds, in the one text form.
func textOf(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(value))
		for i, part := range value {
			parts[i] = textOf(part)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			pairs = append(pairs, name+"="+textOf(value[name]))
		}
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(value)
	}
}

// format is the text form of v.
func format(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return formatDuration(value)
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // what has been parsed can be written
		return string(text)
	case fmt.Stringer:
		return value.String()
	}
	switch v.Kind() {
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = format(v.Index(i))
		}
		return strings.Join(parts, ",")
	case reflect.Map:
		var pairs []string
		for _, name := range v.MapKeys() {
			pairs = append(pairs, name.String()+"="+format(v.MapIndex(name)))
		}
		slices.Sort(pairs)
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(v.Interface())
	}
}

// daysFrom is where hours stop being easy to read.
const daysFrom = 1000 * time.Hour

func formatDuration(d time.Duration) string {
	if d >= daysFrom && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
