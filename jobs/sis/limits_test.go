package sis_test

import (
	"fmt"
	"runtime"
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
		"whole records": func() string {
			return count(schedule, func(i int) string {
				return "<FLTR>" + strings.Replace(flightCore, ">15<", fmt.Sprintf(">%d<", i), 1) + "</FLTR>"
			}, "</SCHD></MSG>")
		},
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

// TestWorstTexts: ten megabytes of what fills memory best take no more than 200 MB, garbage included (K23). How long they
// take is printed here, and measured for all of them by BenchmarkWorst: on a machine of its own none takes two seconds.
func TestWorstTexts(t *testing.T) {
	const maxHeap = 200 << 20
	texts := worst()
	for _, name := range []string{
		"whole records", "entries", "records", "reference records", "reference entries", "elements of a record", "unknown elements of a FLOP",
		"an unknown element", "attributes of one element", "attributes of many elements", "one text", "references", "open elements", "open brackets",
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(texts[name]())
			require.LessOrEqual(t, len(raw), sis.MaxBytes)
			peak := watchHeap()
			start := time.Now()
			m, err := sis.Decode(raw, sis.Options{})
			took := time.Since(start)
			grown := peak()
			runtime.KeepAlive(m)
			t.Logf("%v, %d MiB, %v", took.Round(time.Millisecond), grown>>20, fault.Of(err))
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
}
