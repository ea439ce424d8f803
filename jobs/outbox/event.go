package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"msgexchange/jobs/message"
)

// Target is where an event goes.
type Target string

// The closed set of targets.
const (
	Msg  Target = "KAFKA:msg"  // what changed, every change
	Schd Target = "KAFKA:schd" // what is, the newest state of a flight
)

// AllTargets lists the targets.
func AllTargets() []Target { return []Target{Msg, Schd} }

// Type is what the record of an event does to its key. A tombstone has no value at all (K21); that a flight was deleted is
// told on msg in the value.
type Type string

// The closed set of types.
const (
	Upsert    Type = "UPSERT"
	Tombstone Type = "TOMBSTONE"
)

// AllTypes lists the types.
func AllTypes() []Type { return []Type{Upsert, Tombstone} }

// State is where an event stands.
type State string

// The closed set of states.
const (
	Pending State = "PENDING"
	Sent    State = "SENT"
	Dead    State = "DEAD"
)

// AllStates lists the states in the order of an event's life.
func AllStates() []State { return []State{Pending, Sent, Dead} }

// Event is one row of msg_event as far as its content goes; how its delivery stands is kept beside it.
type Event struct {
	ID           int64 // 0 until WithID
	Target       Target
	Message      message.Position // the message whose effect it tells
	FLID         int64
	PartitionKey string
	Type         Type
	StateVersion int64
	Kind         message.Kind
	SNDR         string
	Payload      json.RawMessage // the record's value; nil for a tombstone
	ReceivedAt   time.Time       // when the message came in; zero when unknown
}

// WithID is the event under the id it got from the sequence. On msg the value carries the id too. To be called once.
func (e Event) WithID(id int64) Event {
	e.ID = id
	if e.Target == Msg {
		numbered := make([]byte, 0, len(e.Payload)+len(`{"eventId":,`)+20)
		numbered = append(numbered, `{"eventId":`...)
		numbered = strconv.AppendInt(numbered, id, 10)
		numbered = append(numbered, ',')
		e.Payload = append(numbered, e.Payload[1:]...)
	}
	return e
}

// Record is the event as it goes to Kafka.
func (e Event) Record() Record {
	return Record{EventID: e.ID, Key: e.PartitionKey, Value: e.Payload, Headers: e.Headers()}
}

// schemaVersion is raised when a reader of today's values would misread tomorrow's.
const schemaVersion = "1"

// Headers are those of the event's record, always the same for the same event, so that a record sent twice can be known
// (K22).
func (e Event) Headers() []Header {
	return []Header{
		{Key: "event-id", Value: strconv.FormatInt(e.ID, 10)},
		{Key: "message-id", Value: e.Message.String()},
		{Key: "event-type", Value: string(e.Type)},
		{Key: "state-version", Value: strconv.FormatInt(e.StateVersion, 10)},
		{Key: "schema-version", Value: schemaVersion},
		{Key: "traceparent", Value: Traceparent(e.Message)},
	}
}

// Traceparent is the W3C trace context of everything done for a message. It is derived from the message's position, so that
// nothing has to be stored for records, logs and spans of many processes to find together.
func Traceparent(p message.Position) string {
	sum := traceSum(p)
	b := make([]byte, 0, len("00--01-")+2*24)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, sum[:16])
	b = append(b, '-')
	b = hex.AppendEncode(b, sum[16:24])
	return string(append(b, "-01"...))
}

// TraceID is the trace id in Traceparent: the trace_id of every log record about the message.
func TraceID(p message.Position) string {
	sum := traceSum(p)
	return hex.EncodeToString(sum[:16])
}

func traceSum(p message.Position) [sha256.Size]byte {
	const longest = 64
	b := append(make([]byte, 0, longest), "msgexchange "...)
	b = append(strconv.AppendInt(b, int64(p.Generation), 10), ':')
	return sha256.Sum256(strconv.AppendInt(b, p.ID, 10))
}
