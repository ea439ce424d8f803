package flight_test

import (
	"fmt"
	"testing"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// BenchmarkFLOP decides one operational message about a flight of a full day and builds its events.
func BenchmarkFLOP(b *testing.B) {
	w := setup(b)
	w.apply(b, "testdata/day.xml", dayID)
	for i := 0; b.Loop(); i++ {
		m := w.message("FLOP-STND", flop(82600102, sis.Fields{"stnd": text(fmt.Sprint(i))}))
		o, err := flight.Decide(w, m, pos(int64(i+2)), at(0), w.opt)
		if err != nil {
			b.Fatal(err)
		}
		outbox.Build(outbox.Cause{Pos: pos(int64(i + 2)), Meta: m.Meta}, o, outbox.Options{Zone: w.opt.Zone})
		w.Apply(o)
	}
}

// BenchmarkDNLD decides a schedule of 5,000 flights, a fifth of them children, into an empty world.
func BenchmarkDNLD(b *testing.B) {
	w := setup(b)
	var records []sis.Record
	for flid := int64(1); flid <= 5000; flid++ {
		var more sis.Fields
		if flid%5 == 0 {
			more = sis.Fields{"maid": number(flid - 1)}
		}
		r := w.fltr(b, flid, fmt.Sprint("CA", flid), "18 11:40", more)
		r.Lists["psdt"] = sis.List{Clear: true, Entries: psdt("208")}
		records = append(records, r)
	}
	m := w.message("SCHD-DNLD", records...)
	for b.Loop() {
		o, err := flight.Decide(flight.NewSet(), m, pos(1), at(0), w.opt)
		if err != nil {
			b.Fatal(err)
		}
		outbox.Build(outbox.Cause{Pos: pos(1), Meta: m.Meta}, o, outbox.Options{Zone: w.opt.Zone})
	}
}
