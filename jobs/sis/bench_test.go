package sis_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// schedule is the sample of a schedule with its flights repeated, each under a FLID of its own from 1.
func schedule(tb testing.TB, flights int) []byte {
	tb.Helper()
	sample := readSample(tb, "SCHD-DNLD")
	recs, flid, maid := regexp.MustCompile(`<RECS>\d+<`), regexp.MustCompile(`<FLID>\d+<`), regexp.MustCompile(`<MAID>\d+<`)
	records := regexp.MustCompile(`(?s)<FLTR>.*?</FLTR>\s*`).FindAllIndex(sample, -1)
	out := recs.ReplaceAll(sample[:records[0][0]], fmt.Appendf(nil, "<RECS>%d<", flights))
	for i := range flights {
		at := records[i%len(records)]
		record := flid.ReplaceAll(sample[at[0]:at[1]], fmt.Appendf(nil, "<FLID>%d<", i+1))
		out = append(out, maid.ReplaceAll(record, fmt.Appendf(nil, "<MAID>%d<", i))...)
	}
	return append(out, sample[records[len(records)-1][1]:]...)
}

func readSample(tb testing.TB, kind string) []byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + kind + "/sample/in.xml")
	require.NoError(tb, err)
	return text
}

// tokens is the least that encoding/xml can do with a text: one pass, nothing checked and nothing kept.
func tokens(tb testing.TB, text []byte) {
	tb.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			tb.Fatal(err)
		}
	}
}

// stage is one part of the work, at its best: others on the machine make it slower, never faster.
type stage struct {
	took   time.Duration
	allocs uint64
}

func (s *stage) measure(work func()) time.Duration {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, used := time.Now(), processor()
	work()
	took := time.Since(start)
	const long = time.Millisecond // what processor says is in microseconds
	if used = processor() - used; took > long {
		took = min(took, used)
	}
	runtime.ReadMemStats(&after)
	s.better(took)
	s.allocs = after.Mallocs - before.Mallocs
	return took
}

// processor is the time that this process has had a processor: what others took meanwhile is not in it.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *stage) better(took time.Duration) {
	if s.took == 0 || took < s.took {
		s.took = took
	}
}

// BenchmarkMessage is what a message costs the head before anything is stored: decoding (guard and catalogue) and deciding,
// beside one pass of encoding/xml over the same bytes in the same run. The goal for ratio, both of them by that pass, is 2.
func BenchmarkMessage(b *testing.B) {
	zone := shanghai(b)
	day, err := sis.Decode(schedule(b, 400), sis.Options{Zone: zone})
	require.NoError(b, err)
	known := flight.NewSet()
	o, err := flight.Decide(known, day, message.Position{ID: 1}, time.Unix(0, 0), flight.Options{Zone: zone})
	require.NoError(b, err)
	known.Apply(o)
	flid := regexp.MustCompile(`<FLID>\d+<`)
	flop := func(kind string) []byte { return flid.ReplaceAll(readSample(b, kind), []byte("<FLID>7<")) }
	for _, c := range []struct {
		name    string
		text    []byte
		flights *flight.Set
	}{
		{"FLOP-STND", flop("FLOP-STND"), known},
		{"FLOP-PSDT", flop("FLOP-PSDT"), known},
		{"SCHD-5000-flights", schedule(b, 5000), flight.NewSet()},
	} {
		b.Run(c.name, func(b *testing.B) { benchMessage(b, c.text, c.flights, zone) })
	}
}

func benchMessage(b *testing.B, text []byte, flights *flight.Set, zone *time.Location) {
	b.Helper()
	var pass, decoding, deciding, both stage
	var m sis.Message
	var o flight.Outcome
	var err error
	decode := func() { m, err = sis.Decode(text, sis.Options{Zone: zone, Ignore: siteRules()}) }
	decide := func() {
		o, err = flight.Decide(flights, m, message.Position{ID: 2}, time.Unix(0, 0), flight.Options{Zone: zone})
	}
	for b.Loop() {
		m, o = sis.Message{}, flight.Outcome{}
		pass.measure(func() { tokens(b, text) })
		took := decoding.measure(decode)
		require.NoError(b, err)
		took += deciding.measure(decide)
		require.NoError(b, err)
		both.better(took)
	}
	require.NotEmpty(b, o.Changes)
	m, o = sis.Message{}, flight.Outcome{}
	peak := watchHeap()
	decode()
	decide()
	grown := peak()
	const MB = 1e6
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(pass.took.Nanoseconds()), "tokens-ns")
	b.ReportMetric(float64(decoding.took.Nanoseconds()), "decode-ns")
	b.ReportMetric(float64(deciding.took.Nanoseconds()), "decide-ns")
	b.ReportMetric(float64(both.took)/float64(pass.took), "ratio")
	b.ReportMetric(float64(pass.allocs), "tokens-allocs")
	b.ReportMetric(float64(decoding.allocs), "decode-allocs")
	b.ReportMetric(float64(deciding.allocs), "decide-allocs")
	if len(text) > MB {
		b.ReportMetric(float64(len(text))/MB/decoding.took.Seconds(), "decode-MB/s")
		b.ReportMetric(float64(grown)/MB, "peak-MB")
	}
	runtime.KeepAlive(o)
}

// BenchmarkWorst is TestWorstTexts without its watch.
func BenchmarkWorst(b *testing.B) {
	for name, text := range worst() {
		raw := []byte(text())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_, _ = sis.Decode(raw, sis.Options{}) // errors are part of it
			}
		})
	}
}
