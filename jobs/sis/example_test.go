package sis_test

import (
	"fmt"
	"strings"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// A message is decoded, what it says of a flight is read by name, and what is wrong with another is told with its place.
func ExampleDecode() {
	opt := sis.Options{Zone: time.FixedZone("airport", 8*60*60), Ignore: sis.IgnoreRules{"LDM-*"}}
	m, err := sis.Decode([]byte(`<MSG>
		<META><SNDR>AODB</SNDR><SEQN>000777</SEQN><DTTM>20261130090311</DTTM><TYPE>FLOP</TYPE><STYP>PSDT</STYP></META>
		<FLOP><FLID>15</FLID><PSDT PSNO="1"><PSST>208</PSST><STST>30NOV260903</STST></PSDT></FLOP>
	</MSG>`), opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := m.Records[0]
	stand := r.Lists["psdt"].Entries[0]
	fmt.Println(m.Meta.IdentityKey(), m.Spec.Mode, r.FLID, stand.Key, stand.Fields["psst"].Str, stand.Fields["stst"].Time())

	_, err = sis.Decode([]byte(`<MSG>
		<META><SNDR>AODB</SNDR><SEQN>778</SEQN><DTTM>20261130090311</DTTM><TYPE>FLOP</TYPE><STYP>PSDT</STYP></META>
		<FLOP><FLID>15</FLID><PSDT PSNO="1"><STST>31NOV260903</STST></PSDT></FLOP>
	</MSG>`), opt)
	fmt.Println(fault.Of(err))
	fmt.Println(err)
	// Output:
	// AODB|FLOP|PSDT|777 REPLACE 15 1 208 2026-11-30 01:03:00 +0000 UTC
	// PROTOCOL
	// PROTOCOL: decode: MSG/FLOP[1]/PSDT/PSST (line 3): it is missing or empty
}

// A message is written as the airport database would.
func ExampleEncode() {
	kind, _ := sis.Lookup("FLOP-STND")
	text := sis.Encode(sis.Message{
		Meta:    message.Meta{SNDR: "AODB", SEQN: 777, DTTM: time.Unix(0, 0), TYPE: kind.TYPE, STYP: kind.STYP},
		Spec:    kind,
		Records: []sis.Record{{FLID: 15, Fields: sis.Fields{"stnd": sis.TextValue("208")}}},
	}, time.UTC)
	_, body, _ := strings.Cut(string(text), "</META>")
	fmt.Print(body)
	// Output:
	// <FLOP><FLID>15</FLID><STND>208</STND></FLOP></MSG>
}
