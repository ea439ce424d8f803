package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// key is one setting of a Config: its name, its field as declared, and the place of its value.
type key struct {
	name  string // "pipeline.poll-interval"
	owner reflect.Type
	field reflect.StructField
	value reflect.Value
}

// envPrefix begins the name of every environment variable of ours.
const envPrefix = "MSGX_"

// env is the environment variable of the key: a.b-c is MSGX_A_B_C.
func (k key) env() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.name))
}

// secret says that the value is never printed.
func (k key) secret() bool { return k.field.Tag.Get("secret") == "true" }

// isMap says that the value may be a mapping of its own in a file.
func (k key) isMap() bool { return k.value.Kind() == reflect.Map }

// keysOf lists the keys of c in the order of the structs.
func keysOf(c *Config) []key {
	var keys []key
	walk(reflect.ValueOf(c).Elem(), "", func(k key) { keys = append(keys, k) }, func(string, reflect.Value) {})
	return keys
}

// walk calls onKey for each setting below v, and onSection for each struct before its settings. A struct's tag adds to the
// prefix; ",squash" or no tag on an embedded struct adds nothing; "-" leaves the field out.
func walk(v reflect.Value, prefix string, onKey func(key), onSection func(prefix string, v reflect.Value)) {
	onSection(prefix, v)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("koanf"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "" || option == "squash":
			walk(v.Field(i), prefix, onKey, onSection)
		case isSection(field.Type):
			walk(v.Field(i), prefix+name+".", onKey, onSection)
		default:
			onKey(key{name: prefix + name, owner: v.Type(), field: field, value: v.Field(i)})
		}
	}
}

// isSection tells a struct of settings from a struct that is one value, such as a network.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) &&
		t != reflect.TypeFor[time.Location]()
}

// validate asks the sections used, all when none is named, for what is wrong with them. A problem begins with the name of its
// key, whether the section wrote the whole name or what is below it.
func validate(c *Config, uses []string) error {
	var errs []error
	walk(reflect.ValueOf(c).Elem(), "", func(key) {}, func(prefix string, v reflect.Value) {
		section, checks := v.Interface().(interface{ Validate() error })
		top, _, _ := strings.Cut(prefix, ".")
		if !checks || len(uses) > 0 && top != "" && !slices.Contains(uses, top) {
			return
		}
		for _, err := range split(section.Validate()) {
			if !strings.HasPrefix(err.Error(), prefix) {
				err = fmt.Errorf("%s%w", prefix, err)
			}
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// split takes apart what errors.Join put together.
func split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, split(e)...)
	}
	return all
}
