package outbox_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

var update = flag.Bool("update", false, "write docs/schemas anew")

// object is a piece of a JSON schema.
type object = map[string]any

const (
	draft    = "https://json-schema.org/draft/2020-12/schema"
	dateTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`
)

// TestSchemas keeps docs/schemas what the catalogue and the records are.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for target, schema := range map[outbox.Target]object{outbox.Schd: schdSchema(), outbox.Msg: msgSchema()} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		require.NoError(t, enc.Encode(schema))
		if *update {
			require.NoError(t, os.WriteFile(schemaFile(target), b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(schemaFile(target))
		require.NoError(t, err, "run with -update")
		require.Equal(t, string(want), b.String(), "run with -update")
	}
}

func schemaFile(t outbox.Target) string {
	return "../../docs/schemas/" + string(t[len("KAFKA:"):]) + ".schema.json"
}

// TestGoldenRecordsKeepTheSchemas holds every record of the cases of jobs/flight against its schema, and what a consumer must
// never see.
func TestGoldenRecordsKeepTheSchemas(t *testing.T) {
	t.Parallel()
	for target, records := range goldens(t) {
		schema := load(t, target)
		require.Greater(t, len(records), 50)
		for file, all := range records {
			for _, record := range all {
				require.NoError(t, schema.VisitJSON(record), "%s: %v", file, record)
			}
		}
		record := slices.Collect(maps.Values(records))[0][0]
		var whole openapi3.Schema // the file as it is, by its own draft
		text, err := os.ReadFile(schemaFile(target))
		require.NoError(t, err)
		require.NoError(t, whole.UnmarshalJSON(text))
		require.NoError(t, whole.VisitJSON(record, openapi3.EnableJSONSchema2020()))
		require.Error(t, whole.VisitJSON(any(with(record, "stnd_", "203")), openapi3.EnableJSONSchema2020()))
		for what, broken := range map[string]object{
			"an unknown member":   with(record, "stnd_", "203"),
			"text for a number":   with(record, "flid", "7"),
			"a day of the wrong":  with(record, "operationDay", "30.11.2026"),
			"version 0":           with(record, "stateVersion", 0),
			"null for what is":    with(record, "flid", nil),
			"a version is missed": without(record, "stateVersion"),
		} {
			require.Error(t, schema.VisitJSON(any(broken)), "%s: %s", target, what)
		}
	}
}

// TestSchemasKnowEveryField: a flight that has everything keeps the schemas, also when it is cleared, and a value of another
// type does not, whichever it is.
func TestSchemasKnowEveryField(t *testing.T) {
	t.Parallel()
	schd, msg := load(t, outbox.Schd), load(t, outbox.Msg)
	base := slices.Collect(maps.Values(goldens(t)[outbox.Schd]))[0][0]
	event := slices.Collect(maps.Values(goldens(t)[outbox.Msg]))[0][0]
	for name, field := range flightFields() {
		if name == "ext" {
			continue // anything goes
		}
		for _, wrong := range []any{true, object{"x": "y"}, []any{1.0}} {
			require.Error(t, schd.VisitJSON(any(with(base, name, wrong))), "%s: %v", name, wrong)
			require.Error(t, msg.VisitJSON(any(with(event, "fields", object{name: wrong}))), "%s: %v", name, wrong)
		}
		require.NoError(t, msg.VisitJSON(any(with(event, "fields", object{name: nil}))), "%s: %v", name, field)
		require.Error(t, schd.VisitJSON(any(with(base, name, nil))), name)
	}
}

func with(record any, name string, value any) object {
	changed := maps.Clone(record.(object))
	changed[name] = value
	return changed
}

func without(record any, name string) object {
	changed := maps.Clone(record.(object))
	delete(changed, name)
	return changed
}

// load gives a schema compiled: as part of an OpenAPI document, for a draft 2020-12 validator compiles anew for each value.
func load(t *testing.T, target outbox.Target) *openapi3.Schema {
	t.Helper()
	text, err := os.ReadFile(schemaFile(target))
	require.NoError(t, err)
	var schema object
	require.NoError(t, json.Unmarshal(bytes.ReplaceAll(text, []byte("#/$defs/"), []byte("#/components/schemas/")), &schema))
	schemas := object{}
	if defs, some := schema["$defs"]; some {
		maps.Copy(schemas, defs.(object))
	}
	delete(schema, "$defs")
	schemas["record"] = schema
	text, err = json.Marshal(object{
		"openapi": "3.1.0", "info": object{"title": "records", "version": "1"}, "paths": object{}, "components": object{"schemas": schemas},
	})
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	return doc.Components.Schemas["record"].Value
}

// goldens are the records in the cases of jobs/flight, by target and file.
func goldens(t *testing.T) map[outbox.Target]map[string][]any {
	t.Helper()
	all := map[outbox.Target]map[string][]any{outbox.Schd: {}, outbox.Msg: {}}
	for _, pattern := range []string{"../flight/testdata/*/*/%.json", "../flight/testdata/day.%.json"} {
		for _, file := range globbed(t, pattern, "events") {
			for _, e := range entries(t, file) {
				if e["target"] == string(outbox.Msg) {
					all[outbox.Msg][file] = append(all[outbox.Msg][file], e["value"])
				}
			}
		}
		for _, file := range globbed(t, pattern, "after") {
			for _, e := range entries(t, file) {
				if published, _ := e["published"].(bool); published { // the value on schd is the flight
					all[outbox.Schd][file] = append(all[outbox.Schd][file], e["flight"])
				}
			}
		}
	}
	return all
}

func globbed(t *testing.T, pattern, name string) []string {
	t.Helper()
	files, err := filepath.Glob(string(bytes.ReplaceAll([]byte(pattern), []byte("%"), []byte(name))))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func entries(t *testing.T, file string) []object {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []object
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// schdSchema describes a record on schd: the whole flight (contract §5, §8.2).
func schdSchema() object {
	properties := maps.Clone(ownFields())
	maps.Copy(properties, flightFields())
	required := slices.Sorted(maps.Keys(ownFields()))
	for _, f := range sis.ScalarSpecs() {
		if f.Mandatory {
			required = append(required, f.Name)
		}
	}
	return object{
		"$schema": draft, "$id": "schd.schema.json", "title": "Value of a record on schd",
		"description": "The newest state of a flight; what was never set or has been cleared is left out. A flight that is gone has a record without a value.",
		"type":        "object", "additionalProperties": false, "required": required, "properties": properties,
	}
}

// msgSchema describes a record on msg: what a message changed (contract §5, §8.15).
func msgSchema() object {
	fields := object{}
	for name, field := range flightFields() {
		fields[name] = object{"anyOf": []any{field, object{"type": "null"}}}
	}
	change := object{"enum": flight.AllOps(), "description": "CREATE carries all fields that are set, UPDATE those that changed, DELETE none"}
	child := object{
		"type": "object", "additionalProperties": false, "required": []string{"flid", "flno", "change", "fields"},
		"properties": object{"flid": id("the child"), "flno": textOf("its flight number"), "change": change, "fields": object{"$ref": "#/$defs/fields"}},
	}
	own := ownFields()
	return object{
		"$schema": draft, "$id": "msg.schema.json", "title": "Value of a record on msg",
		"description": "What a message changed of a flight; of code-share children through their master.",
		"type":        "object", "additionalProperties": false,
		"required": []string{"eventId", "messageId", "kind", "change", "flid", "ffid", "operationDay", "stateVersion", "dttm", "fields"},
		"properties": object{
			"eventId": id("ascending over both topics, with gaps"), "messageId": position("the message"), "kind": object{"enum": kinds()},
			"change": change, "flid": own["flid"], "ffid": textOf("ALCD-FLNO-MVIN-SODT-FLIN, for people"), "operationDay": own["operationDay"],
			"stateVersion": own["stateVersion"], "dttm": moment("when the sender made the message"), "fields": object{"$ref": "#/$defs/fields"},
			"child":    object{"$ref": "#/$defs/child", "description": "the one child that changed"},
			"children": object{"type": "array", "minItems": 2, "items": object{"$ref": "#/$defs/child"}, "description": "the children that changed, when several did"},
		},
		"$defs": object{
			"child":  child,
			"fields": object{"type": "object", "additionalProperties": false, "properties": fields, "description": "only what changed: a list or a group whole, null where it was cleared"},
		},
	}
}

func kinds() []message.Kind {
	var all []message.Kind
	for k := range sis.Catalogue() {
		if k.TYPE == sis.TypeSCHD || k.TYPE == sis.TypeFLOP {
			all = append(all, k.Name)
		}
	}
	return all
}

// ownFields are those of a flight that no message says.
func ownFields() object {
	return object{
		"flid":          id("AODB's number of the flight"),
		"operationDay":  object{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": "the day it belongs to; it never changes"},
		"stateVersion":  object{"type": "integer", "minimum": 1, "description": "one more with every message that changed the flight"},
		"lastMessageId": position("the message that last changed the flight"),
		"updatedAt":     moment("when that was"),
	}
}

// flightFields are those of a flight that messages change.
func flightFields() object {
	fields := object{
		"mafl": object{"type": "array", "minItems": 1, "items": object{"type": "string"}, "description": "flight numbers of the code-share children, sorted"},
		"abdg": textOf("airbridges of the planned stands, joined by commas"),
		"ext":  object{"type": "object", "description": "what the dictionary does not know, by its name in lower case"},
	}
	for _, f := range sis.ScalarSpecs() {
		if f.Group == "" {
			fields[f.JSON] = scalar(f)
			continue
		}
		if fields[f.Group] == nil {
			fields[f.Group] = object{"type": "object", "additionalProperties": false, "minProperties": 1, "properties": object{}}
		}
		fields[f.Group].(object)["properties"].(object)[f.JSON] = scalar(f)
	}
	for _, l := range sis.ListSpecs() {
		if l.Mode != sis.Patch {
			fields[l.Name] = list(l)
		}
	}
	return fields
}

func list(l sis.ListSpec) object {
	entry := members(append([]sis.Field{l.Key}, l.Fields...))
	properties := entry["properties"].(object)
	if l.Numbered() {
		properties[l.Key.JSON] = object{"type": "integer", "minimum": 1, "maximum": 127, "description": l.Key.Meaning}
	}
	if l.Sub != nil {
		properties["vipt"] = object{"type": "array", "minItems": 1, "items": members(l.Sub), "description": "services"}
	}
	if l.Name == "psdt" {
		for _, at := range sis.ListSpecs() {
			if at.Mode == sis.Patch {
				properties[at.Name] = members(at.Fields)
			}
		}
	}
	return object{"type": "array", "minItems": 1, "items": entry, "description": l.Meaning}
}

func members(fields []sis.Field) object {
	properties, required := object{}, []string{}
	for _, f := range fields {
		properties[f.JSON] = scalar(f)
		if f.Mandatory {
			required = append(required, f.JSON)
		}
	}
	return object{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}

func scalar(f sis.Field) object {
	var v object
	switch f.Type() {
	case sis.Text:
		v = textOf(f.Meaning)
	case sis.Number:
		v = object{"type": "integer", "description": f.Meaning}
	case sis.Decimal:
		v = object{"type": "number", "description": f.Meaning}
	case sis.Moment:
		v = moment(f.Meaning)
	case sis.Empty:
	}
	if f.OneOf != nil {
		v["enum"] = f.OneOf
	}
	return v
}

func textOf(meaning string) object {
	return object{"type": "string", "minLength": 1, "description": cmp.Or(meaning, "text")}
}

func moment(meaning string) object {
	return object{"type": "string", "format": "date-time", "pattern": dateTime, "description": meaning}
}

func id(meaning string) object {
	return object{"type": "integer", "minimum": 1, "description": meaning}
}

// position is a message id, with its generation once ids have begun again (contract §8.10).
func position(meaning string) object {
	return object{"description": meaning, "anyOf": []any{object{"type": "integer"}, object{"type": "string", "pattern": "^[0-9]+:[0-9]+$"}}}
}
