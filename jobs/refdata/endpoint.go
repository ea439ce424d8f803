package refdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

// Endpoint is where the neighbour serves one list, and how its records are told apart.
type Endpoint struct {
	RType string
	Path  string     // below the neighbour's URL
	Key   [][]string // the parts of the key, each a path of names into a record
	List  []string   // the path of names to the array of records; none: the answer is the array
}

// Answer is what the neighbour says about a list.
type Answer struct {
	Unchanged bool   // what the validator stands for is still all there is
	Body      []byte // else: all of it
	Validator string // to be shown next time; empty: none
}

// ParseEndpoint reads what is configured for a list: "PATH KEY" or "PATH KEY LIST". KEY and LIST are names with dots between
// them; the parts of a KEY that has several are joined by +.
func ParseEndpoint(rtype, text string) (Endpoint, error) {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 || !strings.HasPrefix(words[0], "/") {
		return Endpoint{}, fmt.Errorf("%s: %q is not of the form /PATH KEY [LIST]", rtype, text)
	}
	if !regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,31}$`).MatchString(rtype) {
		return Endpoint{}, fmt.Errorf("%q is no name of a list: capitals, digits and _", rtype)
	}
	e := Endpoint{RType: rtype, Path: words[0]}
	for part := range strings.SplitSeq(words[1], "+") {
		e.Key = append(e.Key, strings.Split(part, "."))
	}
	if len(words) == 3 {
		e.List = strings.Split(words[2], ".")
	}
	return e, nil
}

// String is the endpoint as it is configured.
func (e Endpoint) String() string {
	parts := make([]string, len(e.Key))
	for i, p := range e.Key {
		parts[i] = strings.Join(p, ".")
	}
	return strings.TrimSpace(strings.Join([]string{e.Path, strings.Join(parts, "+"), strings.Join(e.List, ".")}, " "))
}

// Read makes a whole list of the neighbour's answer. It is refused with fault.Protocol when it is cut off, is something else,
// has a record without its key or two with the same, or has none at all: an empty answer is a neighbour that has lost its
// data more often than a list that has ended.
func (e Endpoint) Read(body []byte) (Batch, error) {
	b := Batch{RType: e.RType, Mode: sis.Complete, Source: AdminAPI}
	array, err := e.array(body)
	if err != nil {
		return b, e.refused("%w", err)
	}
	if len(array) == 0 {
		return b, e.refused("the list is empty")
	}
	seen := make(map[string]int, len(array))
	for i, doc := range array {
		key, err := e.key(doc)
		if err != nil {
			return b, e.refused("record %d: %w", i+1, err)
		}
		if first := seen[key]; first != 0 {
			return b, e.refused("records %d and %d have the same key", first, i+1)
		}
		seen[key] = i + 1
		b.Records = append(b.Records, Record{Key: key, Doc: doc})
	}
	return b, nil
}

func (e Endpoint) refused(format string, args ...any) error {
	return fault.New(fault.Protocol, "read the answer about "+e.RType, format, args...)
}

// array finds the records in the answer.
func (e Endpoint) array(body []byte) (array []json.RawMessage, err error) {
	switch {
	case !utf8.Valid(body):
		return nil, errors.New("it is no UTF-8")
	case bytes.Contains(body, []byte(`\u0000`)):
		return nil, errors.New("it holds a NUL")
	}
	for _, name := range e.List {
		if body, err = member(body, name); err != nil {
			return nil, err
		}
	}
	if err := whole(body, &array); err != nil {
		return nil, err
	}
	return array, nil
}

// key joins the parts of a record's key.
func (e Endpoint) key(doc json.RawMessage) (string, error) {
	parts := make([]string, len(e.Key))
	for i, path := range e.Key {
		value := doc
		var err error
		for _, name := range path {
			if value, err = member(value, name); err != nil {
				return "", err
			}
		}
		if parts[i], err = keyPart(value); err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(path, "."), err)
		}
	}
	return strings.Join(parts, KeySeparator), nil
}

// keyPart is a text or a number that says something.
func keyPart(value json.RawMessage) (string, error) {
	var v any
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	if err := in.Decode(&v); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case json.Number:
		return v.String(), nil
	case string:
		if s := strings.TrimSpace(v); s != "" && !strings.Contains(s, KeySeparator) {
			return s, nil
		}
	}
	return "", errors.New("it is no key")
}

func member(doc []byte, name string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := whole(doc, &object); err != nil {
		return nil, err
	}
	value, ok := object[name]
	if !ok {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return value, nil
}

// whole reads one JSON value and nothing behind it.
func whole(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON")
	}
	return nil
}
