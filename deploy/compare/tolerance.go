package compare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Tolerance explains differences. All that it names must fit; what it does not name does.
type Tolerance struct {
	// Field is a path without places in lists, and covers what is below it: psdt covers psdt[0].psno. Empty: whole records.
	Field string `yaml:"field" json:"field,omitempty"`
	// IDs are the records meant; none: all.
	IDs []string `yaml:"ids" json:"ids,omitempty"`
	// On is where there is a value: both, left or right; empty: wherever.
	On Where `yaml:"on" json:"on,omitempty"`
	// Why is what a reader in a year must know. Required.
	Why string `yaml:"why" json:"why"`
}

// ReadTolerances reads a list of them; everything wrong with it is told at once.
func ReadTolerances(r io.Reader) ([]Tolerance, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var list []Tolerance
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var errs []error
	for i, t := range list {
		if strings.TrimSpace(t.Why) == "" {
			errs = append(errs, fmt.Errorf("tolerance %d: why: required", i+1))
		}
		if t.On != "" && !slices.Contains(AllWheres(), t.On) {
			errs = append(errs, fmt.Errorf("tolerance %d: on: %q is none of both, left, right", i+1, t.On))
		}
		if t.Field == "" && t.On == "" && len(t.IDs) == 0 {
			errs = append(errs, fmt.Errorf("tolerance %d: explains every missing record; name ids or a side", i+1))
		}
	}
	return list, errors.Join(errs...)
}

func (t Tolerance) explains(d Difference) bool {
	path := regexp.MustCompile(`\[\d+\]`).ReplaceAllString(d.Path, "")
	covers := path == t.Field || t.Field != "" && strings.HasPrefix(path, t.Field+".")
	return covers && (t.On == "" || t.On == d.On) && (len(t.IDs) == 0 || slices.Contains(t.IDs, d.ID))
}
