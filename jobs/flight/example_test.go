package flight_test

import (
	"fmt"
	"time"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

func ExampleDecide() {
	flights := flight.NewSet(&flight.Flight{FLID: 15, OperationDay: "2026-03-18", Version: 6, Scalars: sis.Fields{"stnd": sis.TextValue("208")}})
	newStand := func(stand string) sis.Message {
		return sis.Message{
			Meta:    message.Meta{TYPE: "FLOP", STYP: "STND"},
			Records: []sis.Record{{FLID: 15, Fields: sis.Fields{"stnd": sis.TextValue(stand)}}},
		}
	}
	at := time.Date(2026, 3, 18, 9, 3, 11, 0, time.UTC)

	for _, m := range []struct {
		id    int64
		stand string
	}{{4711, "212"}, {4710, "203"}, {4712, "212"}} { // 4710 is late, 4712 says nothing new
		o, err := flight.Decide(flights, newStand(m.stand), message.Position{ID: m.id}, at, flight.Options{Zone: time.UTC})
		if err != nil {
			fmt.Println(err)
		}
		flights.Apply(o)
		f := flights.Flight(15)
		fmt.Println(m.id, len(o.Changes), f.Scalars["stnd"].Str, "version", f.Version, "set by", f.Provenance["stnd"])
	}
	// Output:
	// 4711 1 212 version 7 set by 4711
	// 4710 0 212 version 7 set by 4711
	// 4712 1 212 version 7 set by 4712
}
