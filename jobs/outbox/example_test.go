package outbox_test

import (
	"fmt"
	"time"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

func Example() {
	meta := message.Meta{SNDR: "AODB", SEQN: 410106, DTTM: time.Date(2026, 3, 18, 9, 3, 11, 0, time.UTC), TYPE: "FLOP", STYP: "STND"}
	before := &flight.Flight{FLID: 15, OperationDay: "2026-03-18", Version: 6, Published: true, Scalars: sis.Fields{
		"alcd": sis.TextValue("CA"), "flno": sis.TextValue("CA4907"), "mvin": sis.TextValue("D"), "flin": sis.TextValue("D"),
		"sodt": sis.MomentValue(time.Date(2026, 3, 18, 11, 40, 0, 0, time.UTC)),
	}}
	pos := message.Position{ID: 4711}

	decided, err := flight.Decide(flight.NewSet(before), sis.Message{Meta: meta, Records: []sis.Record{
		{FLID: 15, Fields: sis.Fields{"stnd": sis.TextValue("212")}},
	}}, pos, meta.DTTM, flight.Options{Zone: time.UTC})
	if err != nil {
		fmt.Println(err)
	}
	for i, e := range outbox.Build(outbox.Cause{Pos: pos, Meta: meta}, decided, outbox.Options{Zone: time.UTC}) {
		fmt.Println(e.Target, e.Type, string(e.WithID(int64(i+1)).Payload))
	}
	// Output:
	// KAFKA:msg UPSERT {"eventId":1,"messageId":4711,"kind":"FLOP-STND","change":"UPDATE","flid":15,"ffid":"CA-CA4907-D-18MAR261140-D","operationDay":"2026-03-18","stateVersion":7,"dttm":"2026-03-18T09:03:11Z","fields":{"stnd":"212"}}
	// KAFKA:schd UPSERT {"flid":15,"alcd":"CA","flno":"CA4907","mvin":"D","sodt":"2026-03-18T11:40:00Z","flin":"D","stnd":"212","operationDay":"2026-03-18","stateVersion":7,"lastMessageId":4711,"updatedAt":"2026-03-18T09:03:11.000Z"}
}
