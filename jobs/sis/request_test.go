package sis_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// scheduleRequest asks for a night.
func scheduleRequest(t testing.TB) sis.Request {
	t.Helper()
	zone := shanghai(t)
	return sis.Request{
		SNDR: "MSGX", SEQN: 217, DTTM: time.Date(2026, 3, 18, 2, 11, 55, 0, zone), Kind: sis.ScheduleRequest,
		From: time.Date(2026, 3, 19, 0, 0, 0, 0, zone), To: time.Date(2026, 3, 19, 6, 59, 0, 0, zone),
	}
}

// TestRequestsByteForByte: what goes into COUTMSGS is exactly what the known consumer sends.
func TestRequestsByteForByte(t *testing.T) {
	t.Parallel()
	zone := shanghai(t)
	stands := sis.Request{SNDR: "MSGX", SEQN: 218, DTTM: time.Date(2026, 3, 18, 3, 2, 18, 0, zone), Kind: sis.ReferenceRequest("SLST")}
	for file, r := range map[string]sis.Request{"testdata/request/RQFD-NONE.xml": scheduleRequest(t), "testdata/request/RQRD-SLST.xml": stands} {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := sis.EncodeRequest(r, zone)
		require.NoError(t, err)
		require.Equal(t, strings.TrimRight(string(want), "\n"), string(got))
		_, err = sis.Decode(got, sis.Options{Zone: zone})
		requireFault(t, err, fault.Unsupported, "") // our own request is no message to us
	}
}

func TestAllRequests(t *testing.T) {
	t.Parallel()
	require.Len(t, sis.AllRequests(), 24)
	for _, kind := range sis.AllRequests() {
		answers := 0
		for k := range sis.Catalogue() {
			if k.Answers == kind {
				answers++
				require.Equal(t, "RESP", k.STYP)
			}
		}
		require.Equal(t, 1, answers, kind)
	}
}

// TestRequestsThatCannotBe are refused before anything is written.
func TestRequestsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*sis.Request){
		"SEQN 0":               func(r *sis.Request) { r.SEQN = 0 },
		"SEQN of seven digits": func(r *sis.Request) { r.SEQN = sis.MaxSEQN + 1 },
		"no sender":            func(r *sis.Request) { r.SNDR = "" },
		"a sender with spaces": func(r *sis.Request) { r.SNDR = " MSGX" },
		"no time":              func(r *sis.Request) { r.DTTM = time.Time{} },
		"no such list":         func(r *sis.Request) { r.Kind, r.From, r.To = "RQRD-XXXX", time.Time{}, time.Time{} },
		"no list":              func(r *sis.Request) { r.Kind, r.From, r.To = "RQRD-", time.Time{}, time.Time{} },
		"another family":       func(r *sis.Request) { r.Kind = "SCHD-DNLD" },
		"no beginning":         func(r *sis.Request) { r.From = time.Time{} },
		"no end":               func(r *sis.Request) { r.To = time.Time{} },
		"ends before":          func(r *sis.Request) { r.From, r.To = r.To, r.From },
		"a list with a window": func(r *sis.Request) { r.Kind = "RQRD-SLST" },
	} {
		r := scheduleRequest(t)
		spoil(&r)
		_, err := sis.EncodeRequest(r, nil)
		require.Equal(t, fault.CodecError, fault.Of(err), name)
	}
}

// TestDecodeOfEncodedRequest: for every request there is.
func TestDecodeOfEncodedRequest(t *testing.T) {
	t.Parallel()
	zone := shanghai(t)
	rapid.Check(t, func(t *rapid.T) {
		minute := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(946_684_800/60, 4_000_000_000/60).Draw(t, name)*60, 0).In(zone)
		}
		r := sis.Request{
			SNDR: anyText().Draw(t, "sndr"), SEQN: rapid.Int64Range(1, sis.MaxSEQN).Draw(t, "seqn"),
			DTTM: minute("dttm").Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "second")) * time.Second),
			Kind: rapid.SampledFrom(sis.AllRequests()).Draw(t, "kind"),
		}
		if r.Kind == sis.ScheduleRequest {
			r.From = minute("from")
			r.To = r.From.Add(time.Duration(rapid.IntRange(0, 4320).Draw(t, "minutes")) * time.Minute)
		}
		text, err := sis.EncodeRequest(r, zone)
		require.NoError(t, err)
		again, err := sis.DecodeRequest(text, zone)
		require.NoError(t, err, "%s", text)
		require.Equal(t, r, again, "%s", text)
	})
}

func TestDecodeRequestRefuses(t *testing.T) {
	t.Parallel()
	text, err := sis.EncodeRequest(scheduleRequest(t), shanghai(t))
	require.NoError(t, err)
	for _, c := range []struct {
		name, from, to string
		class          fault.Class
	}{
		{"no message", "<MSG", "<M", fault.Malformed},
		{"not well-formed", "</STDB>", "", fault.Malformed},
		{"no META", "META", "MET", fault.Malformed},
		{"cut", "</MSG>", "", fault.Malformed},
		{"no body", "RQFD>", "RQRD>", fault.Malformed},
		{"not a request", "<STYP>NONE", "<STYP>SLST", fault.Protocol},
		{"no end of the window", "<STDE>", "<STDE/><X>", fault.Malformed},
		{"an empty end", "19MAR260659", "", fault.Protocol},
		{"no time", "19MAR260000", "19MAR269900", fault.Protocol},
		{"no time at the end", "19MAR260659", "now", fault.Protocol},
		{"text behind it", "</MSG>", "</MSG>x", fault.Malformed},
		{"number 0", "000217", "000000", fault.Protocol},
	} {
		_, err := sis.DecodeRequest([]byte(strings.ReplaceAll(string(text), c.from, c.to)), nil)
		require.Equal(t, c.class, fault.Of(err), "%s: %v", c.name, err)
	}
	list, err := sis.EncodeRequest(sis.Request{SNDR: "MSGX", SEQN: 1, DTTM: time.Unix(1, 0), Kind: "RQRD-SLST"}, nil)
	require.NoError(t, err)
	_, err = sis.DecodeRequest([]byte(strings.Replace(string(list), "<RTYP>SLST", "<RTYP>GLST", 1)), nil)
	require.Equal(t, fault.Protocol, fault.Of(err))
	_, err = sis.DecodeRequest([]byte(strings.Replace(string(list), "<RTYP>SLST", "<X/><RTYP>SLST", 1)), nil)
	require.NoError(t, err)
	_, err = sis.DecodeRequest(nil, nil)
	require.Equal(t, fault.Malformed, fault.Of(err))
	_, err = sis.DecodeRequest([]byte(strings.Replace(string(list), "<RTYP>", strings.Repeat("<X/>", 100_000)+"<RTYP>", 1)), nil)
	require.Equal(t, fault.Protocol, fault.Of(err))
	require.Equal(t, message.Kind("RQRD-SLST"), sis.ReferenceRequest("SLST"))
}
