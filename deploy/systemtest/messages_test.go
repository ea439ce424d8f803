package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample reads one of the dictionary's sample messages.
func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "samples", name+".xml"))
	require.NoError(t, err)
	return string(b)
}

// envelope writes a message; dttm runs on with seqn, so that no two are the same.
func envelope(seqn int, typ, styp, body string) string {
	return fmt.Sprintf(`<MSG><META><SNDR>AODB</SNDR><SEQN>%d</SEQN><DTTM>202603180%d%02d%02d</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		seqn, seqn/3600%10, seqn/60%60, seqn%60, typ, styp, body)
}

// schedule writes a SCHD of departures with the FLIDs first … first+n-1.
func schedule(seqn, first, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<SCHD><RECS>%d</RECS>", n)
	for i := range n {
		fmt.Fprintf(&b, `<FLTR><FLID>%d</FLID><ALCD>3U</ALCD><FLNO>3U%d</FLNO><MVIN>D</MVIN><SODT>18MAR261%03d</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>320</ACFT></FLTR>`,
			first+i, first+i, i%10*100+i/10%60)
	}
	b.WriteString("</SCHD>")
	return envelope(seqn, "SCHD", "DNLD", b.String())
}

// flop writes a change of one text field of a flight.
func flop(seqn, flid int, styp, value string) string {
	return envelope(seqn, "FLOP", styp, fmt.Sprintf("<FLOP><FLID>%d</FLID><%s>%s</%s></FLOP>", flid, styp, value, styp))
}
