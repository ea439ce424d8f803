package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"msgexchange/db/pgq"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// readFlight turns a row with its lists into a flight.
func readFlight(r *pgq.FlightsByIDRow) (*flight.Flight, error) {
	f := &flight.Flight{
		FLID: r.Flid, OperationDay: flight.Day(r.OperationDay.Format(time.DateOnly)), Version: r.StateVersion,
		LastMessage: message.Position{Generation: r.LastGeneration, ID: r.LastMsgID},
		CreatedBy:   message.Position{Generation: r.CreatedGeneration, ID: r.CreatedMsgID},
		DeletedBy:   message.Position{Generation: r.DeletedGeneration, ID: r.DeletedMsgID},
		DeletedAt:   orZero(r.DeletedAt).UTC(), UpdatedAt: r.UpdatedAt.UTC(), Published: r.Published,
		MAFL: r.Mafl, ABDG: orEmpty(r.Abdg),
		Scalars: make(sis.Fields, members(r.Scalars)), Lists: map[string][]sis.Entry{},
		Ext: map[string]json.RawMessage{}, Provenance: make(map[string]message.Position, members(r.Provenance)),
	}
	parts := []struct {
		column string
		text   json.RawMessage
		read   func(*flight.Flight, *scanner) error
	}{
		{"scalars", r.Scalars, readScalars},
		{"provenance", r.Provenance, readProvenance},
		{"ext", r.Ext, readExt},
		{"stand_ops", r.StandOps, readLists},
		{"lists", r.Lists, readLists}, // NULL when there are none
	}
	for _, p := range parts {
		if len(p.text) == 0 {
			continue
		}
		if err := p.read(f, &scanner{text: p.text}); err != nil {
			return nil, fmt.Errorf("%s: %w", p.column, err)
		}
	}
	return f, nil
}

// members is about how many members the object has, with those of objects in it: a map that need not grow is filled in half the
// time.
func members(object []byte) int { return bytes.Count(object, []byte(`":`)) }

func readScalars(f *flight.Flight, s *scanner) error {
	return s.object(func(name []byte) error {
		if spec, ok := sis.Scalar(string(name)); ok {
			return readValue(f.Scalars, spec, s.value())
		}
		group := string(name) + "."
		return s.object(func(name []byte) error {
			spec, ok := sis.Scalar(group + string(name))
			if !ok {
				return fmt.Errorf("%s%s: no such field", group, name)
			}
			return readValue(f.Scalars, spec, s.value())
		})
	})
}

func readProvenance(f *flight.Flight, s *scanner) error {
	return s.object(func(name []byte) error {
		key, err := fieldName(name)
		if err != nil {
			return err
		}
		var p message.Position
		if err := p.UnmarshalJSON(s.value()); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		f.Provenance[key] = p
		return nil
	})
}

func readExt(f *flight.Flight, s *scanner) error {
	return s.object(func(name []byte) error {
		key, err := unquote(name)
		if err != nil {
			return err
		}
		f.Ext[key] = slices.Clone(s.value())
		return nil
	})
}

// readLists adds the lists in an object of arrays of rows.
func readLists(f *flight.Flight, s *scanner) error {
	return s.object(func(name []byte) error {
		spec, ok := sis.ListByName(string(name))
		if !ok {
			return fmt.Errorf("%s: no such list", name)
		}
		var entries []sis.Entry
		err := s.array(func() error {
			e, err := readEntry(spec, s)
			entries = append(entries, e)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
		slices.SortFunc(entries, func(a, b sis.Entry) int { return flight.CompareKeys(a.Key, b.Key) })
		f.Lists[spec.Name] = entries
		return nil
	})
}

// readEntry takes a row; columns that are no field (flid, kind) are passed over.
func readEntry(spec *sis.ListSpec, s *scanner) (sis.Entry, error) {
	e := sis.Entry{Fields: make(sis.Fields, len(spec.Fields))}
	err := s.object(func(name []byte) error {
		switch {
		case string(name) == spec.Key.JSON:
			return readKey(&e, spec, s.value())
		case string(name) == subColumn && spec.Sub != nil && s.peek() == '[':
			return s.array(func() error {
				sub := sis.Fields{}
				e.Sub = append(e.Sub, sub)
				return s.object(func(name []byte) error { return readColumn(sub, spec.Sub, name, s.value()) })
			})
		}
		return readColumn(e.Fields, spec.Fields, name, s.value())
	})
	return e, err
}

func readKey(e *sis.Entry, spec *sis.ListSpec, text []byte) error {
	key, err := sis.ParseJSON(spec.Key.Type(), text)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Key.Name, err)
	}
	e.Key = key.Str
	if spec.Numbered() {
		e.Key = strconv.FormatInt(key.Num, 10)
	}
	return nil
}

func readColumn(fields sis.Fields, specs []sis.Field, name, text []byte) error {
	for i := range specs {
		if specs[i].JSON == string(name) {
			return readValue(fields, &specs[i], text)
		}
	}
	return nil
}

// readValue adds a value unless it is null.
func readValue(fields sis.Fields, spec *sis.Field, text []byte) error {
	v, err := sis.ParseJSON(spec.Type(), text)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	if !v.IsEmpty() {
		fields[spec.Name] = v
	}
	return nil
}

// fieldName is unquote for names most of which the catalogue has: those take no memory.
func fieldName(name []byte) (string, error) {
	if spec, ok := sis.Scalar(string(name)); ok {
		return spec.Name, nil
	}
	if list, ok := sis.ListByName(string(name)); ok {
		return list.Name, nil
	}
	return unquote(name)
}

// unquote gives a name as it is without its escapes.
func unquote(name []byte) (string, error) {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name), nil
	}
	v, err := sis.ParseJSON(sis.Text, slices.Concat([]byte{'"'}, name, []byte{'"'}))
	return v.Str, err
}

// subColumn holds the entries inside an entry of VIPF, under sis' name for them.
const subColumn = "vipt"
