package sis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends v as JSON: text quoted, times as ISO 8601 with zone's offset, numbers and decimals bare, Empty as null.
// A nil zone is UTC.
func AppendJSON(dst []byte, v Value, zone *time.Location) []byte {
	switch v.Type {
	case Empty:
		return append(dst, "null"...)
	case Text:
		return appendQuoted(dst, v.Str)
	case Moment:
		dst = append(dst, '"')
		dst = time.Unix(v.Num, 0).In(orUTC(zone)).AppendFormat(dst, time.RFC3339)
		return append(dst, '"')
	case Number:
		return strconv.AppendInt(dst, v.Num, 10)
	case Decimal:
		return append(dst, v.Str...)
	}
	return append(dst, "null"...)
}

// ParseJSON reads back what AppendJSON wrote for a value of type t; null is Empty. A time may carry any offset.
func ParseJSON(t Type, raw json.RawMessage) (Value, error) {
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		return Value{}, nil
	}
	switch t {
	case Text:
		s, err := unquote(raw)
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", t, err)
		}
		return TextValue(s), nil
	case Moment:
		var at time.Time
		if err := at.UnmarshalJSON(raw); err != nil {
			return Value{}, fmt.Errorf("%s: %w", t, err)
		}
		return MomentValue(at), nil
	case Number:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return Value{}, fmt.Errorf("%s: %w", t, err)
		}
		return NumberValue(n), nil
	case Decimal:
		return FormDecimal.read(string(raw), nil)
	case Empty:
	}
	return Value{}, fmt.Errorf("no value of type %s is written as %s", t, quoted(string(raw)))
}

// AppendScalars appends the single values among f as one JSON object in catalogue order, groups nested (contract §8.2); an
// Empty one is null.
func AppendScalars(dst []byte, f Fields, zone *time.Location) []byte {
	return append(AppendMembers(append(dst, '{'), f, zone), '}')
}

// AppendMembers is AppendScalars without the braces, for an object that has other members before them.
func AppendMembers(dst []byte, f Fields, zone *time.Location) []byte {
	group := ""
	for i := range wire.scalars {
		spec := &wire.scalars[i]
		v, ok := f[spec.Name]
		if !ok {
			continue
		}
		if spec.Group != group {
			if group != "" {
				dst = append(dst, '}')
			}
			if group = spec.Group; group != "" {
				dst = append(appendName(dst, group), '{')
			}
		}
		dst = AppendJSON(appendName(dst, spec.JSON), v, zone)
	}
	if group != "" {
		dst = append(dst, '}')
	}
	return dst
}

// AppendEntry appends an entry of l as a JSON object: its key, its values, the entries inside it.
func AppendEntry(dst []byte, l *ListSpec, e Entry, zone *time.Location) []byte {
	dst = appendName(append(dst, '{'), l.Key.JSON)
	if l.Numbered() {
		dst = append(dst, e.Key...)
	} else {
		dst = appendQuoted(dst, e.Key)
	}
	dst = appendValues(dst, l.Fields, e.Fields, zone)
	if len(e.Sub) > 0 {
		dst = append(appendName(dst, subName), '[')
		for _, s := range e.Sub {
			dst = append(appendValues(append(separate(dst), '{'), l.Sub, s, zone), '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendValues(dst []byte, specs []Field, f Fields, zone *time.Location) []byte {
	for i := range specs {
		if v, ok := f[specs[i].Name]; ok {
			dst = AppendJSON(appendName(dst, specs[i].JSON), v, zone)
		}
	}
	return dst
}

// separate appends the comma that belongs after a value or member.
func separate(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		return append(dst, ',')
	}
	return dst
}

// appendName appends the name of a member, after a comma where one belongs.
func appendName(dst []byte, name string) []byte {
	return append(appendQuoted(separate(dst), name), ':')
}

// unquote reads a JSON string. Most have nothing to unescape, and encoding/json would take ten times as long over them.
func unquote(raw json.RawMessage) (string, error) {
	if n := len(raw); n >= 2 && raw[0] == '"' && raw[n-1] == '"' && !bytes.ContainsAny(raw[1:n-1], `"\`) {
		return string(raw[1 : n-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// appendQuoted appends s as a JSON string. It leaves <, > and & as they are, which encoding/json alone does not.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		from := i
		for i < len(s) && s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
			i++
		}
		if dst = append(dst, s[from:i]...); i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // bytes that are not UTF-8 become U+FFFD
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}
