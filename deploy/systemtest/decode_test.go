package systemtest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/sis"
)

// TestDecodeOfTenMegabytes: whoever looks at the largest of all messages needs no large machine, not even for a schedule in
// which every flight has every element there is.
func TestDecodeOfTenMegabytes(t *testing.T) {
	t.Parallel()
	const (
		before   = `<MSG><META><SNDR>FIMS</SNDR><SEQN>1</SEQN><DTTM>20260318131500</DTTM><TYPE>SCHD</TYPE><STYP>DNLD</STYP></META><SCHD>`
		flight   = `<FLTR><FLID>%d</FLID><ALCD>3U</ALCD><FLNO>3U6812</FLNO><MVIN>A</MVIN><SODT>18MAR260925</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>32N</ACFT>%s</FLTR>`
		after    = `</SCHD></MSG>`
		maxKByte = 215 << 10 // measured: 196 MiB; 45 of them are the program
	)
	var all strings.Builder
	for _, f := range sis.ScalarSpecs() {
		if !f.Mandatory && !strings.Contains(all.String(), "<"+f.Elem+"/>") {
			all.WriteString("<" + f.Elem + "/>")
		}
	}
	for _, l := range sis.ListSpecs() {
		all.WriteString("<" + l.Elem + "/>")
	}
	text := []byte(before)
	for id := 1; ; id++ {
		record := fmt.Sprintf(flight, id, all.String())
		if len(text)+len(record)+len(after) > sis.MaxBytes {
			break
		}
		text = append(text, record...)
	}
	cmd := exec.CommandContext(t.Context(), build(t), "decode", "-")
	cmd.Stdin = bytes.NewReader(append(text, after...))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s", errs.String())
	require.Contains(t, out.String()[:200], `"outcome":"OK"`)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	t.Logf("%d KiB at most", usage.Maxrss)
	require.Less(t, usage.Maxrss, int64(maxKByte))
}
