package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// Sources is where a configuration comes from; what the environment says wins over the file, and the file over the defaults.
type Sources struct {
	File    string   // path of a YAML file; empty: none
	Environ []string // as os.Environ gives it
	// Uses names the sections that will be used, such as "pg": what is missing or wrong in others does no harm then. Every
	// value must be readable all the same. None: all are used.
	Uses []string
}

// notOurs are the variables that begin like ours and are no settings: they steer tests, the demo's cache and test hooks.
func notOurs(name string) bool {
	return strings.HasPrefix(name, "MSGX_TEST_") || strings.HasPrefix(name, "MSGX_FAULT_") || name == "MSGX_CACHE"
}

// Load composes and checks a configuration. Its error holds every problem at once, one a line, each beginning with its key;
// the Config is then good for being printed only.
func Load(s Sources) (Config, error) {
	c := Defaults()
	keys := keysOf(&c)
	tree, err := read(s, keys)
	errs := []error{err}
	for _, k := range keys {
		errs = append(errs, k.take(tree))
	}
	errs = append(errs, validate(&c, s.Uses))
	c.settle(tree.Exists)
	errs = append(errs, c.unsafe())
	return c, errors.Join(errs...)
}

// Problems takes the error of Load apart, one problem an element.
func Problems(err error) []string {
	var lines []string
	for _, e := range split(err) {
		lines = append(lines, e.Error())
	}
	return lines
}

// read puts file and environment into one tree and finds what belongs to no key.
func read(s Sources, keys []key) (*koanf.Koanf, error) {
	tree := koanf.New(".")
	var errs []error
	if s.File != "" {
		if err := tree.Load(file.Provider(s.File), nested{yaml.Parser()}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.File, err))
		}
	}
	for _, name := range tree.Keys() {
		if !slices.ContainsFunc(keys, func(k key) bool { return k.covers(name, tree) }) {
			errs = append(errs, fmt.Errorf("%s: is no key (in %s)", name, s.File))
		}
	}
	byEnv := make(map[string]string, len(keys))
	for _, k := range keys {
		byEnv[k.env()] = k.name
	}
	variables := env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return s.Environ },
		TransformFunc: func(name, value string) (string, any) {
			known, ok := byEnv[name]
			if !ok && !notOurs(name) {
				errs = append(errs, fmt.Errorf("%s: is the environment variable of no key", name))
			}
			return known, value
		},
	})
	if err := tree.Load(variables, nil); err != nil {
		errs = append(errs, err)
	}
	return tree, errors.Join(errs...)
}

// covers says that a name found in a file is the key, an entry of its map, or an empty section around it.
func (k key) covers(name string, tree *koanf.Koanf) bool {
	return name == k.name || k.isMap() && strings.HasPrefix(name, k.name+".") ||
		strings.HasPrefix(k.name, name+".") && tree.Get(name) == nil
}

// take sets the key from the tree; a key that is not there, or has nothing after its colon, keeps its default. A value that
// does not fit leaves the default too, so that nothing else is complained about because of it.
func (k key) take(tree *koanf.Koanf) error {
	value := tree.Get(k.name)
	if value == nil {
		return nil
	}
	parsed := reflect.New(k.value.Type()).Elem()
	var errs []error
	for _, err := range split(parse(parsed, strings.TrimSpace(textOf(value)))) {
		if k.secret() {
			err = errors.New("cannot be read")
		}
		errs = append(errs, fmt.Errorf("%s: %w", k.name, err))
	}
	if len(errs) == 0 {
		k.value.Set(parsed)
	}
	return errors.Join(errs...)
}

// nested lets a file spell a key with dots, as it is printed, or as nested sections.
type nested struct{ koanf.Parser }

// Unmarshal reads a file into nested sections.
func (n nested) Unmarshal(text []byte) (map[string]any, error) {
	tree, err := n.Parser.Unmarshal(text)
	if err != nil {
		return nil, err
	}
	flat, _ := maps.Flatten(tree, nil, ".")
	return maps.Unflatten(flat, "."), nil
}
