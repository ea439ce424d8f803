package flight

import (
	"encoding/json"
	"slices"
	"time"
)

// updatedAtLayout shows when we changed a flight: coarser than what is stored, so that rounding never shows.
const updatedAtLayout = "2006-01-02T15:04:05.000Z07:00"

// AppendJSON writes the whole flight as everybody sees it (contract §5, §8.2): names in the order of the catalogue, what was
// never set or has been cleared left out, times in zone.
func AppendJSON(dst []byte, f *Flight, zone *time.Location) []byte {
	w := writer{buf: dst, zone: zone}
	w.open('{')
	w.name("flid").number(f.FLID)
	if f.Live() {
		w.all(f)
	}
	w.name("operationDay").text(string(f.OperationDay))
	w.name("stateVersion").number(f.Version)
	w.name("lastMessageId").position(f.LastMessage)
	w.name("updatedAt").text(f.UpdatedAt.In(zone).Format(updatedAtLayout))
	w.close('}')
	return w.done()
}

// AppendFields writes what a change did to the flight's own fields (contract §5, §8.15): those in c.Fields, a changed list
// or group whole, a cleared one as null; of ext only the names that changed.
func AppendFields(dst []byte, c Change, zone *time.Location) []byte {
	w := writer{buf: dst, zone: zone}
	w.open('{')
	for _, name := range c.Fields {
		w.name(name)
		if name == "ext" && c.Op == Update {
			w.object(changedExt(c.Before.Ext, c.After.Ext))
		} else {
			w.field(c.After, name)
		}
	}
	w.close('}')
	return w.done()
}

// AppendBefore writes what the fields of AppendFields were before an update, null where they were not set; nothing for a
// flight that came or went.
func AppendBefore(dst []byte, c Change, zone *time.Location) []byte {
	if c.Op != Update {
		return append(dst, "{}"...)
	}
	c.Before, c.After = c.After, c.Before
	return AppendFields(dst, c, zone)
}

// AppendProvenance writes which message set each field, by field name (contract §8.3).
func AppendProvenance(dst []byte, f *Flight) []byte {
	w := writer{buf: dst}
	w.open('{')
	keys := make([]string, 0, len(f.Provenance))
	for key := range f.Provenance {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		w.name(key).position(f.Provenance[key])
	}
	w.close('}')
	return w.done()
}

func changedExt(was, is map[string]json.RawMessage) map[string]json.RawMessage {
	changed := map[string]json.RawMessage{}
	for name := range was {
		if is[name] == nil {
			changed[name] = json.RawMessage("null")
		}
	}
	for name, value := range is {
		if !sameText(was[name], value) {
			changed[name] = value
		}
	}
	return changed
}
