package simulator

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/message"
)

// firstDay is the day all tests start with.
var firstDay = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func stream(t *testing.T, o Options) *Generator {
	t.Helper()
	if o.Day.IsZero() {
		o.Day = firstDay
	}
	g, err := New(o)
	require.NoError(t, err)
	return g
}

func TestSameOptionsSameBytes(t *testing.T) {
	t.Parallel()
	a, b := stream(t, Options{Seed: 7, Lists: true}), stream(t, Options{Seed: 7, Lists: true})
	for range 12_000 { // more than a day
		require.Equal(t, a.Next(), b.Next())
	}
}

func TestOtherSeedOtherStream(t *testing.T) {
	t.Parallel()
	a, b := stream(t, Options{Seed: 1}), stream(t, Options{Seed: 2})
	same := a.Next().Text == b.Next().Text
	require.False(t, same)
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Flights: -1})
	require.ErrorContains(t, err, "flights: -1 is not in 1 … 7500")
	require.ErrorContains(t, err, "day is missing")
}

func TestClockAndCounterGoForward(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Seed: 3, Flights: 40})
	before := g.Next()
	for range 5000 {
		m := g.Next()
		require.False(t, m.At.Before(before.At))
		if before.SEQN != lastSEQN {
			require.Equal(t, before.SEQN+1, m.SEQN)
		}
		before = m
	}
}

func TestCounterWraps(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Flights: 2})
	g.seqn = lastSEQN
	require.EqualValues(t, lastSEQN, g.Next().SEQN)
	require.EqualValues(t, firstSEQN, g.Next().SEQN)
}

func TestScheduleHasTheFlightsAskedFor(t *testing.T) {
	t.Parallel()
	for _, flights := range []int{1, 2, 3, 7, 300, 2000} {
		g := stream(t, Options{Seed: 5, Flights: flights})
		m := nextOf(g, "SCHD-DNLD")
		require.Equal(t, flights, strings.Count(m.Text, "<FLTR>"))
		sameDay := strings.Contains(nextOf(g, "SCHD-DNLD").Text, "<SODT>30NOV26")
		require.False(t, sameDay, "the next day's schedule follows")
	}
}

func nextOf(g *Generator, kind message.Kind) Message {
	for {
		if m := g.Next(); m.Kind == kind {
			return m
		}
	}
}

// TestEveryKindComes names what a few days must bring, the rare ones too.
func TestEveryKindComes(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`SCHD-DNLD SCHD-ADFT STTS-DNLD SLST-DNLD ABDG-DNLD LDM-NONE RSTA-STND
		FLOP-ABTM FLOP-ACFT FLOP-ACTT FLOP-APPT FLOP-BOTM FLOP-CHDT FLOP-CHOT FLOP-CKDT FLOP-CLDT FLOP-CNCL FLOP-COBT FLOP-CTOT
		FLOP-DELY FLOP-EGSR FLOP-EGST FLOP-EOBT FLOP-ESTT FLOP-EXSS FLOP-FDEL FLOP-FDIV FLOP-FINT FLOP-FLAB FLOP-FRET FLOP-FTSS
		FLOP-GTDT FLOP-HNAG FLOP-IEST FLOP-LACL FLOP-MAXP FLOP-NAAT FLOP-NEAT FLOP-PADT FLOP-PEDT FLOP-PORT FLOP-PSDT FLOP-PSHT
		FLOP-REMC FLOP-RENO FLOP-RUNW FLOP-SRVT FLOP-STND FLOP-TAOP FLOP-TIPT FLOP-TOBT FLOP-VIPF FLOP-VIPP`)
	g := stream(t, Options{Seed: 1, Lists: true})
	seen := map[message.Kind]bool{}
	for range 40_000 {
		seen[g.Next().Kind] = true
	}
	for _, kind := range want {
		require.True(t, seen[message.Kind(kind)], kind)
	}
	require.Len(t, seen, len(want))
}

func TestTextIsWellFormed(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Seed: 9, Flights: 60})
	for range 4000 {
		m := g.Next()
		dec := xml.NewDecoder(strings.NewReader(m.Text))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, m.Text)
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	require.Equal(t, declaration+rootOpen+"  <A B=\"&lt;&#34;\">1 &amp; 2</A>\n"+rootClose,
		document([]element{{name: "A", text: "1 & 2", attrs: []string{"B", `<"`}}}))
}

func TestWireTime(t *testing.T) {
	t.Parallel()
	require.Equal(t, "05MAR260907", wireTime(time.Date(2026, 3, 5, 9, 7, 59, 0, time.UTC)))
	require.Empty(t, wireTime(time.Time{}))
}

// TestNothingIsSaidAboutDeletedFlights follows the flights of a few days by their ids.
func TestNothingIsSaidAboutDeletedFlights(t *testing.T) {
	t.Parallel()
	g := stream(t, Options{Seed: 11})
	gone := map[string]bool{}
	for range 15_000 {
		m := g.Next()
		_, rest, found := strings.Cut(m.Text, "<FLOP>\n    <FLID>")
		if !found {
			continue
		}
		id, _, _ := strings.Cut(rest, "<")
		require.False(t, gone[id], m.Text)
		gone[id] = m.Kind == "FLOP-FDEL"
	}
}
