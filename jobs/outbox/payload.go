package outbox

import (
	"strconv"
	"time"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// appendPayload appends the value of a record on msg, but for the event's id, which WithID puts in front (contract §5, §8.15). A
// message that changed one child of the flight has it under "child", one that changed several has them under "children".
func (a *announcement) appendPayload(b []byte, c *Cause, zone *time.Location) []byte {
	change := a.own
	if change.Op == "" {
		change.Op = flight.Update
	}
	b = append(b, `{"messageId":`...)
	b = appendPosition(b, c.Pos)
	b = append(b, `,"kind":`...)
	b = appendText(b, string(c.Meta.Kind()))
	b = append(b, `,"change":"`...)
	b = append(b, change.Op...)
	b = append(b, `","flid":`...)
	b = strconv.AppendInt(b, a.flight.FLID, 10)
	b = append(b, `,"ffid":`...)
	b = appendText(b, a.flight.FFID(zone))
	b = append(b, `,"operationDay":"`...)
	b = append(b, a.flight.OperationDay...)
	b = append(b, `","stateVersion":`...)
	b = strconv.AppendInt(b, a.flight.Version, 10)
	b = append(b, `,"dttm":"`...)
	b = c.Meta.DTTM.In(zone).AppendFormat(b, time.RFC3339)
	b = append(b, `","fields":`...)
	b = flight.AppendFields(b, change, zone)
	b = a.appendChildren(b, zone)
	return append(b, '}')
}

func (a *announcement) appendChildren(b []byte, zone *time.Location) []byte {
	switch len(a.children) {
	case 0:
		return b
	case 1:
		return appendChild(append(b, `,"child":`...), a.children[0], zone)
	}
	b = append(b, `,"children":[`...)
	for i, c := range a.children {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChild(b, c, zone)
	}
	return append(b, ']')
}

func appendChild(b []byte, c flight.Change, zone *time.Location) []byte {
	b = append(b, `{"flid":`...)
	b = strconv.AppendInt(b, c.After.FLID, 10)
	b = append(b, `,"flno":`...)
	b = appendText(b, c.After.FLNO())
	b = append(b, `,"change":"`...)
	b = append(b, c.Op...)
	b = append(b, `","fields":`...)
	return append(flight.AppendFields(b, c, zone), '}')
}

func appendText(b []byte, s string) []byte {
	return sis.AppendJSON(b, sis.Value{Type: sis.Text, Str: s}, nil)
}

// appendPosition writes a bare id, or "generation:id" once ids have started again (contract §8.10).
func appendPosition(b []byte, p message.Position) []byte {
	if p.Generation == 0 {
		return strconv.AppendInt(b, p.ID, 10)
	}
	return appendText(b, p.String())
}
