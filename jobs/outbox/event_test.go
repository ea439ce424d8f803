package outbox_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	e := outbox.Event{
		Target: outbox.Schd, Message: message.Position{ID: 4711}, FLID: 15, PartitionKey: "15", Type: outbox.Tombstone, StateVersion: 7,
	}.WithID(99)
	require.Equal(t, outbox.Record{EventID: 99, Key: "15", Headers: []outbox.Header{
		{Key: "event-id", Value: "99"},
		{Key: "message-id", Value: "4711"},
		{Key: "event-type", Value: "TOMBSTONE"},
		{Key: "state-version", Value: "7"},
		{Key: "schema-version", Value: "1"},
		{Key: "traceparent", Value: "00-ed5e4ef58d221a0c23c6b0c7b1e541b7-cd438fa267475da6-01"},
	}}, e.Record())

	e.Message.Generation = 2
	require.Equal(t, "2:4711", e.Headers()[1].Value)
	require.Equal(t, "00-"+outbox.TraceID(e.Message)+"-", outbox.Traceparent(e.Message)[:36], "logs and records find together")
	require.NotEqual(t, outbox.Traceparent(message.Position{ID: 4711}), outbox.Traceparent(e.Message))
}

func TestWithIDLeavesTheEventAlone(t *testing.T) {
	t.Parallel()
	e := outbox.Event{Target: outbox.Msg, Payload: json.RawMessage(`{"messageId":1}`)}
	require.JSONEq(t, `{"eventId":5,"messageId":1}`, string(e.WithID(5).Payload))
	require.JSONEq(t, `{"messageId":1}`, string(e.Payload))

	e.Target = outbox.Schd
	require.JSONEq(t, `{"messageId":1}`, string(e.WithID(5).Payload), "the state is told as it is")
}
