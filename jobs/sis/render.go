package sis

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// The outcomes of the command decode (contract §2) that are not a fault class.
const (
	outcomeOK      = "OK"
	outcomeIgnored = "IGNORED"
)

// RenderDecoded is what the command decode prints of what Decode gave, as one JSON object (contract §2):
//
//	{"outcome":"OK","kind":"FLOP-PSDT","meta":{…},"body":{"records":[{"flid":1,"psdt":[…]}]}}
//	{"outcome":"PROTOCOL","kind":"FLOP-PSDT","meta":{…},"error":"…"}
//
// In a record of a flight a cleared value is null and a cleared list is []; a message about reference data may have remarks
// beside its records, on what is to be logged. A nil zone is UTC.
func RenderDecoded(m Message, err error, zone *time.Location) []byte {
	dst, _ := renderDecoded(m, err, zone, func(soFar []byte) ([]byte, error) { return soFar, nil })
	return dst
}

// WriteDecoded writes what RenderDecoded gives to w, piece by piece: of ten megabytes of schedule it is as much again.
func WriteDecoded(w io.Writer, m Message, err error, zone *time.Location) error {
	const piece = 64 << 10
	rest, err := renderDecoded(m, err, zone, func(soFar []byte) ([]byte, error) {
		if len(soFar) < piece {
			return soFar, nil
		}
		last := len(soFar) - 1 // stays, for what comes next looks at it
		_, err := w.Write(soFar[:last])
		soFar[0] = soFar[last]
		return soFar[:1], err
	})
	if err == nil {
		_, err = w.Write(rest)
	}
	return err
}

// renderDecoded hands what there is so far to between after each record, and goes on with what that gives.
func renderDecoded(m Message, err error, zone *time.Location, between func([]byte) ([]byte, error)) ([]byte, error) {
	outcome := outcomeOK
	switch {
	case err != nil:
		outcome = string(fault.Of(err))
	case m.Ignored != "":
		outcome = outcomeIgnored
	}
	dst := appendQuoted(appendName([]byte{'{'}, "outcome"), outcome)
	if m.Meta != (message.Meta{}) {
		dst = appendQuoted(appendName(dst, "kind"), string(m.Meta.Kind()))
		dst = appendMeta(appendName(dst, "meta"), m.Meta, zone)
	}
	switch outcome {
	case outcomeOK:
		if dst, err = appendBody(appendName(dst, "body"), m, zone, between); err != nil {
			return nil, err
		}
	case outcomeIgnored:
		dst = appendQuoted(appendName(dst, "error"), "ignored:"+m.Ignored)
	default:
		dst = appendQuoted(appendName(dst, "error"), fault.Text(err))
	}
	return append(dst, '}'), nil
}

func appendMeta(dst []byte, m message.Meta, zone *time.Location) []byte {
	dst = appendQuoted(appendName(append(dst, '{'), "sndr"), m.SNDR)
	dst = strconv.AppendInt(appendName(dst, "seqn"), m.SEQN, 10)
	dst = AppendJSON(appendName(dst, "dttm"), MomentValue(m.DTTM), zone)
	dst = appendQuoted(appendName(dst, "type"), m.TYPE)
	dst = appendQuoted(appendName(dst, "styp"), m.STYP)
	return append(dst, '}')
}

func appendBody(dst []byte, m Message, zone *time.Location, between func([]byte) ([]byte, error)) (_ []byte, err error) {
	dst = append(appendName(append(dst, '{'), "records"), '[')
	for i := range m.Records {
		if dst, err = between(appendRecord(separate(dst), &m.Records[i], zone)); err != nil {
			return nil, err
		}
	}
	if m.Reference == nil {
		return append(dst, ']', '}'), nil
	}
	for _, r := range m.Reference.Records {
		if dst, err = between(m.Reference.Spec.AppendJSON(separate(dst), r)); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if len(m.Reference.Remarks) > 0 {
		dst = append(appendName(dst, "remarks"), '[')
		for _, remark := range m.Reference.Remarks {
			dst = appendQuoted(separate(dst), remark)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

func appendRecord(dst []byte, r *Record, zone *time.Location) []byte {
	dst = strconv.AppendInt(appendName(append(dst, '{'), "flid"), r.FLID, 10)
	if r.Delete {
		dst = append(appendName(dst, "delete"), "true"...)
	}
	dst = AppendMembers(dst, r.Fields, zone)
	for i := range wire.lists {
		l, ok := r.Lists[wire.lists[i].Name]
		if !ok {
			continue
		}
		dst = append(appendName(dst, wire.lists[i].Name), '[')
		for _, e := range l.Entries {
			dst = AppendEntry(separate(dst), &wire.lists[i], e, zone)
		}
		dst = append(dst, ']')
	}
	if len(r.Ext) > 0 {
		dst = appendExt(appendName(dst, "ext"), r.Ext)
	}
	return append(dst, '}')
}

func appendExt(dst []byte, ext map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	for _, name := range slices.Sorted(maps.Keys(ext)) {
		dst = append(appendName(dst, name), ext[name]...)
	}
	return append(dst, '}')
}
