package main

import (
	"bytes"
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/deploy/systemtest/rig"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

// stored is an event as it is in the outbox.
type stored struct {
	outbox.Event
	state      outbox.State
	attempts   int
	superseded int64 // the event that stood for it, 0 when it was sent itself
}

// events compares the outbox with the replay's, in order, and the topics with the outbox.
func (a *auditor) events(ctx context.Context) error {
	all, err := a.outbox(ctx)
	if err != nil {
		return err
	}
	must := a.replay.events
	a.must(len(all) == len(must), "events", "%d are stored, %d must be", len(all), len(must))
	for i := range min(len(all), len(must)) {
		if is, should := all[i].Event, must[i].WithID(all[i].ID); !same(is, should) {
			a.differ("events", "no. %d\n    is   %+v %s\n    must %+v %s", i, brief(is), is.Payload, brief(should), should.Payload)
			break // what follows is out of step
		}
	}
	byTarget := map[outbox.Target][]stored{}
	for _, e := range all {
		a.must(e.state == outbox.Sent && e.attempts == 0, "events", "%d is %s after %d attempts", e.ID, e.state, e.attempts)
		byTarget[e.Target] = append(byTarget[e.Target], e)
	}
	for target, topic := range map[outbox.Target]string{outbox.Msg: "msg", outbox.Schd: "schd"} {
		records, err := a.world.Broker.Read(ctx, topic)
		if err != nil {
			return err
		}
		a.count("events on "+topic, len(byTarget[target]))
		a.count("records on "+topic, len(records))
		a.topic(topic, byTarget[target], records)
	}
	return a.spans(ctx)
}

// spans compares event_span with the outbox: everything is sent, so that nothing may be said to wait or to be dead.
func (a *auditor) spans(ctx context.Context) error {
	rows, err := a.world.Pool.Query(ctx, "SELECT target, state, first_id, last_id FROM event_span ORDER BY span_id")
	if err != nil {
		return err
	}
	var target, state string
	var first, last int64
	_, err = pgx.ForEachRow(rows, []any{&target, &state, &first, &last}, func() error {
		a.differ("spans", "of %s events %d to %d are said to be %s", target, first, last, state)
		return nil
	})
	return err
}

func (a *auditor) outbox(ctx context.Context) ([]stored, error) {
	rows, err := a.world.Pool.Query(ctx, `
		SELECT event_id, target, msg_id, flid, partition_key, event_type, state_version, kind, sndr, payload::text, state, attempts, coalesce(superseded_by, 0)
		FROM msg_event ORDER BY event_id`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (e stored, err error) {
		var payload *string
		err = r.Scan(&e.ID, &e.Target, &e.Message.ID, &e.FLID, &e.PartitionKey, &e.Type, &e.StateVersion, &e.Kind, &e.SNDR, &payload,
			&e.state, &e.attempts, &e.superseded)
		if payload != nil {
			e.Payload = []byte(*payload)
		}
		return e, err
	})
}

// label is an event without its content.
type label struct {
	id, flid, version int64
	target            outbox.Target
	typ               outbox.Type
	message           message.Position
	kind              message.Kind
	key, sndr         string
}

func brief(e outbox.Event) label {
	return label{e.ID, e.FLID, e.StateVersion, e.Target, e.Type, e.Message, e.Kind, e.PartitionKey, e.SNDR}
}

func same(a, b outbox.Event) bool { return brief(a) == brief(b) && bytes.Equal(a.Payload, b.Payload) }

// topic compares a topic with its events: each is there, word for word, and first appearances are in the order of event ids,
// for each key. A record may be there twice, which is what at least once means (contract §5); it is counted. On schd an
// event that a newer one stood for may be missing, and the last record of a flight is its newest event.
func (a *auditor) topic(topic string, events []stored, records []*kgo.Record) {
	byID, newest := make(map[int64]stored, len(events)), map[int64]int64{}
	for _, e := range events {
		byID[e.ID] = e
		newest[e.FLID] = max(newest[e.FLID], e.ID)
	}
	seen, last, partition := map[int64]bool{}, map[string]int64{}, map[string]int32{}
	for _, r := range records {
		key := string(r.Key)
		id, err := strconv.ParseInt(rig.Header(r, "event-id"), 10, 64)
		e, found := byID[id]
		if err != nil || !found {
			a.differ(topic, "the record at %d/%d has event id %q, which is no event's", r.Partition, r.Offset, rig.Header(r, "event-id"))
			continue
		}
		a.must(matches(r, e.Event), topic, "the record at %d/%d is not event %d: %s, must be %s", r.Partition, r.Offset, id, r.Value, e.Payload)
		if p, known := partition[key]; known && p != r.Partition {
			a.differ(topic, "key %s is in partitions %d and %d", key, p, r.Partition)
		}
		partition[key] = r.Partition
		switch {
		case !seen[id]:
			a.must(id > last[key], topic, "event %d of key %s comes after %d", id, key, last[key])
		case topic == "schd":
			a.must(id == last[key], topic, "event %d of key %s comes again after %d", id, key, last[key])
			fallthrough
		default:
			a.count("repeated on "+topic, 1)
		}
		seen[id] = true
		last[key] = max(last[key], id)
	}
	for _, e := range events {
		if e.superseded == 0 {
			a.must(seen[e.ID], topic, "event %d was never sent", e.ID)
		} else {
			a.must(topic == "schd" && e.superseded > e.ID && byID[e.superseded].FLID == e.FLID, topic, "event %d was closed by %d", e.ID, e.superseded)
		}
	}
	if topic == "schd" {
		for flid, id := range newest {
			a.must(last[strconv.FormatInt(flid, 10)] == id, topic, "the last record of flight %d is event %d, must be %d", flid, last[strconv.FormatInt(flid, 10)], id)
		}
	}
}

// matches says that a record is the event's, header by header and byte by byte.
func matches(r *kgo.Record, e outbox.Event) bool {
	if string(r.Key) != e.PartitionKey || !bytes.Equal(r.Value, e.Payload) || (r.Value == nil) != (e.Payload == nil) {
		return false
	}
	for _, h := range e.Headers() {
		if rig.Header(r, h.Key) != h.Value {
			return false
		}
	}
	return true
}
