package config

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// masked stands for a secret that is set.
const masked = "***"

// Print writes every key of c as one line of YAML, "a.b-c: value", secrets masked. What it writes can be loaded again.
func Print(w io.Writer, c Config) error {
	for _, k := range keysOf(&c) {
		line, err := yaml.Marshal(map[string]any{k.name: k.scalar()})
		if err != nil {
			return fmt.Errorf("print %s: %w", k.name, err)
		}
		if _, err := io.WriteString(w, strings.TrimSpace(string(line))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// shown is the text form of the key's value, fit for everybody's eyes.
func (k key) shown() string {
	text := format(k.value)
	if k.secret() && text != "" {
		return masked
	}
	return text
}

// scalar is what YAML shall hold: numbers and truth values as such, all else as text.
func (k key) scalar() any {
	if k.value.CanInt() || k.value.CanFloat() || k.value.Kind() == reflect.Bool {
		if text := k.shown(); text == fmt.Sprint(k.value.Interface()) {
			return k.value.Interface()
		}
	}
	return k.shown()
}
