package sis_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

// fill repeats part until text around it is as long as a message may be.
func fill(before, part, after string) string {
	return before + strings.Repeat(part, (sis.MaxBytes-len(before)-len(after))/len(part)) + after
}

// worst are the texts of full size that cost most, by what they try to exhaust; made one at a time, for each is 10 MB.
func worst() map[string]func() string {
	const flop, flopEnd = "<MSG>" + goodMeta + "<FLOP><FLID>1</FLID><STND>", "</STND></FLOP></MSG>"
	schedule := "<MSG>" + meta("SCHD-DNLD") + "<SCHD>"
	flight := schedule + "<FLTR>" + flightCore
	const flightEnd = "</FLTR></SCHD></MSG>"
	texts := map[string]func() string{
		"whole records":               func() string { return records("") },
		"records with all there is":   func() string { return records(everything()) },
		"unknown elements of records": func() string { return records("<a/><a/>" + strangers(24)) },
		"too many of them":            func() string { return records(strangers(600)) },
		"filled unknown elements":     func() string { return records(`<NEWA B="1"><C>2</C></NEWA><NEWB>x</NEWB>`) },
		"entries": func() string {
			return count(flight, func(i int) string { return fmt.Sprintf(`<DELY CODE="%x">x</DELY>`, i) }, flightEnd)
		},
		"reference records": func() string {
			return count("<MSG>"+meta("ABDG-DNLD"), func(i int) string {
				return fmt.Sprintf("<ABDG><ABCD>%x</ABCD><STND>1</STND><GATE>2</GATE></ABDG>", i)
			}, "</MSG>")
		},
		"reference entries": func() string {
			return count("<MSG>"+meta("ABDG-DNLD")+"<ABDG><ABCD>1</ABCD>", func(i int) string { return fmt.Sprintf("<STND>%x</STND>", i) }, "</ABDG></MSG>")
		},
	}
	for name, c := range map[string][3]string{
		"records":                       {"<MSG>" + goodMeta, "<FLOP><FLID>1</FLID><STND/></FLOP>", "</MSG>"},
		"elements of a record":          {flight, "<a/>", flightEnd},
		"elements before META":          {"<MSG>", "<a/>", goodMeta + goodBody + "</MSG>"},
		"elements of META":              {"<MSG><META>", "<A/>", "</META>" + goodBody + "</MSG>"},
		"deep and wide unknown element": {flight + strings.Repeat("<a>", 90), "<b/>", strings.Repeat("</a>", 90) + flightEnd},
		"attributes of one element":     {"<MSG ", "a='' ", ">" + goodMeta + goodBody + "</MSG>"},
		"attributes of many elements":   {"<MSG>" + goodMeta, `<a b="" c="" d="" e=""/>`, goodBody + "</MSG>"},
		"pieces of text":                {flop, "a<!---->", flopEnd},
		"one text":                      {flop, "名", flopEnd},
		"references":                    {flop, "&#38;", flopEnd},
		"a name":                        {"<", "a", "/>"},
		"open brackets":                 {"", "<", ""},
		"open elements":                 {"<MSG>", "<a>", ""},
		"entities":                      {flop, "&amp;", flopEnd},
		"instructions":                  {"<MSG>", "<?a b?>", goodMeta + goodBody + "</MSG>"},
		"unknown elements of a FLOP":    {"<MSG>" + goodMeta + "<FLOP><FLID>1</FLID><STND/>", "<A>x</A>", "</FLOP></MSG>"},
		"an unknown element":            {flight + "<NEW>", "x", "</NEW>" + flightEnd},
		"declared entities":             {"<!DOCTYPE MSG [", `<!ENTITY a "&a;&a;">`, "]>" + msg(goodMeta+goodBody)},
	} {
		texts[name] = func() string { return fill(c[0], c[1], c[2]) }
	}
	return texts
}

// count is fill with parts that differ.
func count(before string, part func(i int) string, after string) string {
	b := []byte(before)
	for i := 0; ; i++ {
		p := part(i)
		if len(b)+len(p)+len(after) > sis.MaxBytes {
			return string(b) + after
		}
		b = append(b, p...)
	}
}

// records is a schedule of flights that all have more besides what a flight must have.
func records(more string) string {
	return count("<MSG>"+meta("SCHD-DNLD")+"<SCHD>", func(i int) string {
		return "<FLTR>" + strings.Replace(flightCore, ">15<", fmt.Sprintf(">%d<", i+1), 1) + more + "</FLTR>"
	}, "</SCHD></MSG>")
}

// everything is every element that a flight need not have, empty.
func everything() string {
	all := ""
	for _, f := range sis.ScalarSpecs() {
		if elem := "<" + f.Elem + "/>"; !f.Mandatory && !strings.Contains(all, elem) {
			all += elem
		}
	}
	for _, l := range sis.ListSpecs() {
		all += "<" + l.Elem + "/>"
	}
	return all
}

// strangers are n elements of different names that nobody knows.
func strangers(n int) string {
	all := ""
	for i := range n {
		all += fmt.Sprintf("<%c%c/>", 'a'+i/26, 'a'+i%26)
	}
	return all
}

// TestWorstTexts: ten megabytes of what fills memory best take no more than 200 MB, garbage included (K23). How long they
// take is printed here, and measured for all of them by BenchmarkWorst: on a machine of its own none takes two seconds.
func TestWorstTexts(t *testing.T) {
	const (
		maxHeap = 200 << 20
		enough  = 160 << 20 // the limit of the command decode: without one the garbage depends on how busy the machine is
	)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(enough))
	texts := worst()
	for _, c := range []struct {
		name  string
		class fault.Class // that it is read, or how far: a text refused at once would prove nothing
	}{
		{"whole records", ""},
		{"records with all there is", ""},
		{"unknown elements of records", ""},
		{"too many of them", fault.Protocol},
		{"filled unknown elements", ""},
		{"entries", fault.Protocol},
		{"records", fault.Protocol},
		{"reference records", fault.Protocol},
		{"reference entries", fault.Protocol},
		{"elements of a record", fault.Protocol},
		{"unknown elements of a FLOP", fault.Protocol},
		{"an unknown element", ""},
		{"attributes of one element", fault.Malformed},
		{"attributes of many elements", ""},
		{"one text", ""},
		{"references", ""},
		{"open elements", fault.Malformed},
		{"open brackets", fault.Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := []byte(texts[c.name]())
			require.LessOrEqual(t, len(raw), sis.MaxBytes)
			peak := watchHeap()
			start := time.Now()
			m, err := sis.Decode(raw, sis.Options{})
			took := time.Since(start)
			grown := peak()
			runtime.KeepAlive(m)
			t.Logf("%v, %d MiB, %v", took.Round(time.Millisecond), grown>>20, fault.Of(err))
			require.Equal(t, c.class, fault.Of(err))
			require.Less(t, grown, uint64(maxHeap))
		})
	}
}

// watchHeap gives how far the heap grew at most since the call.
func watchHeap() func() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	base, done, out := stats.HeapAlloc, make(chan struct{}), make(chan uint64)
	go func() {
		peak := base
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapAlloc)
			case <-done:
				out <- peak - base
				return
			}
		}
	}()
	return func() uint64 {
		close(done)
		return <-out
	}
}

// What is decoded of ten megabytes is written in pieces, and is the same as in one.
func TestWriteInPieces(t *testing.T) {
	t.Parallel()
	m, err := sis.Decode([]byte(records("")), sis.Options{})
	require.NoError(t, err)
	var written pieces
	require.NoError(t, sis.WriteDecoded(&written, m, nil, nil))
	require.Less(t, written.longest, 128<<10)
	require.True(t, bytes.Equal(sis.RenderDecoded(m, nil, nil), written.Bytes()))

	require.ErrorIs(t, sis.WriteDecoded(broken{}, m, nil, nil), io.ErrClosedPipe)
}

// pieces keeps what is written and how much came at once at most.
type pieces struct {
	bytes.Buffer
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.Buffer.Write(b)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := sis.Decode([]byte(fill("", " ", msg(goodMeta+goodBody))+"  "), sis.Options{})
	requireFault(t, err, fault.Malformed, "")
	_, err = sis.TextOf(append([]byte{0xFE, 0xFF}, make([]byte, 3*sis.MaxBytes)...), "")
	requireFault(t, err, fault.Malformed, "")
}

// K23: 200,000 levels are refused at the 101st, without a deep stack and without memory for them.
func TestK23_deep(t *testing.T) {
	for _, text := range []string{
		"<MSG>" + strings.Repeat("<a>", 200_000), strings.Repeat("<MSG>", 200_000),
		msg(goodMeta + "<FLOP>" + strings.Repeat("<a>", 200_000) + strings.Repeat("</a>", 200_000) + "</FLOP>"),
	} {
		raw := []byte(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := sis.Decode(raw, sis.Options{})
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10))
		requireFault(t, err, fault.Malformed, "")
		require.ErrorContains(t, err, "more than 100 levels")
		requireFault(t, sis.WellFormed([]byte(text)), fault.Malformed, "")
	}
}

// TestTooMuchInside: our own bounds refuse what no sender means, as broken content.
func TestTooMuchInside(t *testing.T) {
	t.Parallel()
	_, err := decode(t, fltr(strings.Repeat("<A/>", 100_000)))
	requireFault(t, err, fault.Protocol, "MSG/SCHD/FLTR[1]")
	_, err = decode(t, msg(goodMeta+strings.Repeat(goodBody, 150_001)))
	requireFault(t, err, fault.Protocol, "MSG/FLOP[150001]")
	_, err = decode(t, records(strangers(600)))
	requireFault(t, err, fault.Protocol, "MSG/SCHD/FLTR[1667]")
}
