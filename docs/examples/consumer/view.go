package main

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// record is what a consumer needs of a Kafka record.
type record struct {
	Key     string
	Value   []byte // nil: a tombstone
	Headers map[string]string
}

// View is what a consumer makes of both topics: the flights as they are, from schd, and each change once, from msg.
type View struct {
	flights  map[string]json.RawMessage // by FLID
	versions map[string]int64           // the highest seen of each flight, kept over its end
	seen     map[int64]bool             // event ids of msg, the newest ones
	order    []int64                    // of seen, oldest first
}

// remembered bounds the event ids kept: repeats come within seconds, of one batch at most.
const remembered = 10_000

// newView is empty.
func newView() *View {
	return &View{flights: map[string]json.RawMessage{}, versions: map[string]int64{}, seen: map[int64]bool{}}
}

// State takes a record of schd in and reports whether it tells anything new. A lower version than the one known is never
// taken; the same version again changes nothing.
func (v *View) State(r record) (bool, error) {
	version, err := number(r, "state-version")
	if err != nil || version < v.versions[r.Key] {
		return false, err
	}
	news := version > v.versions[r.Key]
	v.versions[r.Key] = version
	if r.Value == nil {
		delete(v.flights, r.Key)
	} else {
		v.flights[r.Key] = r.Value
	}
	return news, nil
}

// Change takes a record of msg in and reports whether it is the first with its event id.
func (v *View) Change(r record) (bool, error) {
	id, err := number(r, "event-id")
	if err != nil || v.seen[id] {
		return false, err
	}
	v.seen[id] = true
	if v.order = append(v.order, id); len(v.order) > remembered {
		delete(v.seen, v.order[0])
		v.order = v.order[1:]
	}
	return true, nil
}

func number(r record, header string) (int64, error) {
	if got := r.Headers["schema-version"]; got != "1" {
		return 0, fmt.Errorf("schema-version %q: this reader knows 1", got)
	}
	n, err := strconv.ParseInt(r.Headers[header], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("header %s: %w", header, err)
	}
	return n, nil
}
