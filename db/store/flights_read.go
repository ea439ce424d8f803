package store

import (
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

// object is a JSON object whose members are still text.
type object = map[string]json.RawMessage

// readFlight turns a row with its lists into a flight.
func readFlight(r *pgq.FlightsByIDRow) (*flight.Flight, error) {
	f := &flight.Flight{
		FLID: r.Flid, OperationDay: flight.Day(r.OperationDay.Format(time.DateOnly)), Version: r.StateVersion,
		LastMessage: message.Position{Generation: r.LastGeneration, ID: r.LastMsgID},
		CreatedBy:   message.Position{Generation: r.CreatedGeneration, ID: r.CreatedMsgID},
		DeletedBy:   message.Position{Generation: r.DeletedGeneration, ID: r.DeletedMsgID},
		DeletedAt:   orZero(r.DeletedAt).UTC(), UpdatedAt: r.UpdatedAt.UTC(), Published: r.Published,
		MAFL: r.Mafl, ABDG: orEmpty(r.Abdg), Lists: map[string][]sis.Entry{},
	}
	var err error
	if f.Scalars, err = readScalars(r.Scalars); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(r.Provenance, &f.Provenance); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	if err := json.Unmarshal(r.Ext, &f.Ext); err != nil {
		return nil, fmt.Errorf("ext: %w", err)
	}
	for _, text := range []json.RawMessage{r.StandOps, r.Lists} {
		if err := readLists(f.Lists, text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func readScalars(text json.RawMessage) (sis.Fields, error) {
	var members object
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("scalars: %w", err)
	}
	fields := make(sis.Fields, len(members))
	for name, raw := range members {
		if _, ok := sis.Scalar(name); ok {
			if err := readField(fields, name, raw); err != nil {
				return nil, err
			}
			continue
		}
		var group object
		if err := json.Unmarshal(raw, &group); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for member, raw := range group {
			if err := readField(fields, name+"."+member, raw); err != nil {
				return nil, err
			}
		}
	}
	return fields, nil
}

func readField(fields sis.Fields, name string, raw json.RawMessage) error {
	spec, ok := sis.Scalar(name)
	if !ok {
		return fmt.Errorf("%s: no such field", name)
	}
	v, err := sis.ParseJSON(spec.Type(), raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fields[name] = v
	return nil
}

// readLists adds the lists in text, an object of arrays of rows, to lists. No text is no lists.
func readLists(lists map[string][]sis.Entry, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	var rows map[string][]object
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("lists: %w", err)
	}
	for name, rows := range rows {
		spec, ok := sis.ListByName(name)
		if !ok {
			return fmt.Errorf("%s: no such list", name)
		}
		entries := make([]sis.Entry, len(rows))
		for i, row := range rows {
			var err error
			if entries[i], err = readEntry(spec, row); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		slices.SortFunc(entries, func(a, b sis.Entry) int { return flight.CompareKeys(a.Key, b.Key) })
		lists[name] = entries
	}
	return nil
}

func readEntry(spec *sis.ListSpec, row object) (sis.Entry, error) {
	key, err := sis.ParseJSON(spec.Key.Type(), row[spec.Key.Name])
	if err != nil {
		return sis.Entry{}, fmt.Errorf("%s: %w", spec.Key.Name, err)
	}
	e := sis.Entry{Key: key.Str}
	if spec.Numbered() {
		e.Key = strconv.FormatInt(key.Num, 10)
	}
	if e.Fields, err = readColumns(spec.Fields, row); err != nil {
		return sis.Entry{}, err
	}
	if spec.Sub == nil || row[subColumn] == nil {
		return e, nil
	}
	var subs []object
	if err := json.Unmarshal(row[subColumn], &subs); err != nil {
		return sis.Entry{}, fmt.Errorf("%s: %w", subColumn, err)
	}
	for _, sub := range subs {
		fields, err := readColumns(spec.Sub, sub)
		if err != nil {
			return sis.Entry{}, fmt.Errorf("%s: %w", subColumn, err)
		}
		e.Sub = append(e.Sub, fields)
	}
	return e, nil
}

func readColumns(specs []sis.Field, row object) (sis.Fields, error) {
	fields := make(sis.Fields, len(specs))
	for i := range specs {
		raw := row[column(&specs[i])]
		if raw == nil {
			continue
		}
		v, err := sis.ParseJSON(specs[i].Type(), raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", specs[i].Name, err)
		}
		if !v.IsEmpty() { // a NULL
			fields[specs[i].Name] = v
		}
	}
	return fields, nil
}

// subColumn holds the entries inside an entry of VIPF.
const subColumn = "vipt"

// column is where a field of an entry is stored: under its name, but for the two of DELY that say too little there.
func column(f *sis.Field) string {
	switch f.Name {
	case "dura":
		return "dura_minutes"
	case "text":
		return "reason"
	}
	return f.Name
}
